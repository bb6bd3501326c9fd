/** Decides when two messages are the same to a model. Clients resend a reply with nulls dropped, text as a list of
 *  parts, or tool arguments re-serialized. In: a message. Out: a key; equal keys mean the same message. Pure. */
import { hash } from "node:crypto";
import { canonicalize, isRollbookError } from "../../../base/index.ts";
import { define, isObject, type JsonObject, tryParse } from "../dialects/index.ts";

/** Fields that servers add to a reply and clients omit from a prompt. */
const ADDED: ReadonlySet<string> = new Set([
  "refusal",
  "annotations",
  "audio",
  "reasoning",
  "reasoning_content",
  "status",
  "index",
  "cache_control",
  ...["logprobs", "citations", "phase", "caller"],
]);
/** An id names the same item in a reply and in the prompt, but some clients drop it. Only call ids are binding. */
const ITEM_TYPES_WITH_OPTIONAL_ID: ReadonlySet<unknown> = new Set(["message", "function_call"]);
const SHORT = 64;

/** The message must have a canonical form; the content of its arguments need not. */
export function messageKey(message: unknown): string {
  if (isBare(message)) return bareKey(message);
  const normal = normalize(message);
  if (isBare(normal)) return bareKey(normal);
  try {
    return shorten(canonicalize(normal));
  } catch (error) {
    // The parsed arguments have no canonical form, so their text is compared.
    if (!isRollbookError(error)) throw error;
    return shorten(canonicalize(message));
  }
}

export function isReply(message: unknown): boolean {
  return isObject(message) && (message.role === "assistant" || message.type === "function_call");
}

interface BareMessage {
  readonly role?: string;
  readonly content: string;
}

function isBare(message: unknown): message is BareMessage {
  if (!isObject(message) || typeof message.content !== "string") return false;
  if (message.role !== undefined && typeof message.role !== "string") return false;
  for (const key in message) if (key !== "role" && key !== "content") return false;
  return true;
}

function bareKey({ role, content }: BareMessage): string {
  return shorten(`${role}\n${content}`);
}

function shorten(key: string): string {
  return key.length <= SHORT ? key : hash("sha1", key, "base64");
}

function normalize(value: unknown, key = ""): unknown {
  if (key === "arguments" && typeof value === "string") return tryParse(value) ?? value;
  if (Array.isArray(value))
    return key === "content" ? contentOf(value) : value.map((each) => normalize(each));
  if (!isObject(value)) return typeof value === "string" ? value.toWellFormed() : value;
  const out: JsonObject = {};
  for (const [name, item] of Object.entries(value)) {
    if (item === null || item === undefined || ADDED.has(name)) continue;
    if (name === "id" && ITEM_TYPES_WITH_OPTIONAL_ID.has(value.type)) continue;
    if (name === "type" && item === "message") continue;
    const normal = normalize(item, name);
    const isEmpty = normal === "" || (Array.isArray(normal) && normal.length === 0);
    if (!isEmpty) define(out, name, normal);
  }
  return out;
}

/** A single text part equals its plain text. */
function contentOf(parts: readonly unknown[]): unknown {
  const normal = parts.map((part) => normalize(part));
  const [only] = normal;
  return normal.length === 1 &&
    isObject(only) &&
    typeof only.text === "string" &&
    typeof only.type === "string" &&
    only.type.endsWith("text")
    ? only.text
    : normal;
}
