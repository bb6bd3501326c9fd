/** Extracts images, sounds and files from messages, to record each once by digest instead of as base64 in every
 *  turn. In: a message. Out: the message with its media replaced by digests, and their bytes. Pure. */
import { type Digest, digestBytes } from "../../../base/index.ts";
import { MEDIA_KIND } from "../../../contract/index.ts";
import { define, isObject, type JsonObject } from "../dialects/index.ts";

interface Media {
  readonly digest: Digest;
  readonly bytes: Uint8Array;
}

const DATA_URL = /^data:([^;,]*)((?:;[^;,]*)*);base64,/;
/** Fields with bare base64 in the public formats, besides data URLs: Anthropic sources, OpenAI audio and files. */
const BASE64_FIELDS: ReadonlySet<string> = new Set(["data", "file_data", "result"]);
/** Shorter than any picture, and cheaper to leave in the message. */
const MIN_CHARS = 64;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** `instead` may return a replacement text. The bytes are then omitted. */
export function extractMedia(
  message: unknown,
  instead: (bytes: Buffer) => string | undefined = () => undefined,
): { message: unknown; media: Media[] } {
  // Only structured content can hold media.
  if (!isObject(message) || (typeof message.content === "string" && message.type === undefined))
    return { message, media: [] };
  const media: Media[] = [];
  return { message: replace(message, { media, instead }, { depth: 0 }), media };
}

interface Found {
  readonly media: Media[];
  readonly instead: (bytes: Buffer) => string | undefined;
}

/** Position of a value: its depth, its field and the object around it. */
interface Where {
  readonly depth: number;
  readonly key?: string;
  readonly of?: JsonObject;
}

/** No format nests this deep. The record repairs deeper values later, so this step must not fail on them. */
const MAX_DEPTH = 100;

function replace(value: unknown, found: Found, where: Where): unknown {
  if (typeof value === "string") return replaceText(value, found, where);
  const depth = where.depth + 1;
  if (depth > MAX_DEPTH) return value;
  if (Array.isArray(value)) {
    const next = value.map((item) => replace(item, found, { depth }));
    return next.some((item, i) => item !== value[i]) ? next : value;
  }
  if (!isObject(value)) return value;
  let changed = false;
  const out: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    const next = replace(item, found, { depth, key, of: value });
    changed ||= next !== item;
    define(out, key, next);
  }
  return changed ? out : value;
}

function replaceText(text: string, found: Found, { key, of }: Where): string {
  if (text.length < MIN_CHARS) return text;
  if (text.startsWith("data:")) {
    const [head, type, rest] = DATA_URL.exec(text.slice(0, 512)) ?? [];
    if (head === undefined) return text;
    return `data:${type}${rest};${keep(text.slice(head.length), found)}`;
  }
  const isBase64 = key !== undefined && BASE64_FIELDS.has(key) && isMediaOwner(of!);
  return isBase64 && BASE64.test(text) ? keep(text, found) : text;
}

function isMediaOwner(of: JsonObject): boolean {
  return (
    of.type === "base64" ||
    "media_type" in of ||
    "format" in of ||
    "filename" in of ||
    (typeof of.type === "string" && of.type.includes("image"))
  );
}

/** Stores the bytes. Returns the text that replaces them in the message. */
function keep(base64: string, { media, instead }: Found): string {
  const bytes = Buffer.from(base64, "base64");
  const other = instead(bytes);
  if (other !== undefined) return other;
  const digest = digestBytes(MEDIA_KIND, bytes);
  media.push({ digest, bytes });
  return `digest=${digest}`;
}
