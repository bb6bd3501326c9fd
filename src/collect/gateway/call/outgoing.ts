/** The request as it goes to an upstream. In: what the client sent, and the target. Out: headers and body. A body
 *  changes only where a routed alias or a configured capture says so; every other byte passes as it came. Pure. */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { type DialectName, dialectNamed, isObject, type RequestFacts } from "../dialects/index.ts";
import { MIN_SECRET, type SecretFinder } from "../redact/index.ts";
import type { Target } from "../upstream/index.ts";
import { renameModel, spliceFields } from "../wire/index.ts";

/** Of the client's headers these say nothing to an upstream, or are ours to say. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  ...["host", "connection", "keep-alive", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "expect", "content-length"],
  // A compressed reply could not be recorded as it passes.
  ...["accept-encoding", "origin", "referer", "forwarded", "x-forwarded-for", "x-real-ip"],
]);
/** By their names: x-goog-api-key, authorization, cookie, x-amz-security-token, and what else clients call their keys. */
const CREDENTIAL = /auth|token|secret|passw|credential|cookie|signature|jwt|dpop|(?:^|[-_])key$|api-?key/;
/** It names a request, for an upstream that is asked twice. */
const NO_CREDENTIAL = /(?:^|-)idempotency-key$/;

export function isCredentialHeader(name: string): boolean {
  return CREDENTIAL.test(name) && !NO_CREDENTIAL.test(name);
}

/** How a name goes out, by how it came in; undefined if it does not. Clients have few, in the spelling of their library. */
const PASSED = new Map<string, string | undefined>();
const MOST_NAMES = 1000;

/** Names and values in turn, as undici takes them. */
export function passedHeaders(raw: readonly string[]): string[] {
  const headers: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = passedName(raw[i]!);
    if (name !== undefined) headers.push(name, raw[i + 1]!);
  }
  return headers;
}

function passedName(given: string): string | undefined {
  const known = PASSED.get(given);
  if (known !== undefined || PASSED.has(given)) return known;
  const name = given.toLowerCase();
  const isPassed = !NOT_PASSED.has(name) && !name.startsWith("x-rollbook-") && !isCredentialHeader(name);
  if (PASSED.size >= MOST_NAMES) PASSED.clear();
  PASSED.set(given, isPassed ? name : undefined);
  return isPassed ? name : undefined;
}

/** Path and query without keys in the query, where some clients have them. */
export function passedPath(path: string): string {
  const mark = path.indexOf("?");
  if (mark < 0) return path;
  const isPassed = (field: string) =>
    !/^(?:key|[^=]*(?:api[-_]?key|token|secret|auth)[^=]*)(?:=|$)/i.test(field);
  const query = path
    .slice(mark + 1)
    .split("&")
    .filter(isPassed)
    .join("&");
  return query === "" ? path.slice(0, mark) : `${path.slice(0, mark)}?${query}`;
}

/** Undefined if the body passes as it is. */
export function rewrittenBody(
  body: Buffer,
  request: RequestFacts,
  { dialect, target }: { dialect: DialectName; target: Target },
): Buffer | undefined {
  const { model, capture } = target;
  const isNamed = model === request.model;
  if (capture === undefined) return isNamed ? undefined : renameModel(body, request.model, target.modelJson);
  const fields: Record<string, unknown> = isNamed ? {} : { model };
  const tokenFields =
    capture.tokens === undefined ? {} : dialectNamed(dialect).tokenFields(capture.tokens, request.stream);
  for (const [name, value] of Object.entries({ ...tokenFields, ...capture.fields }))
    if (!isAsked(request.parameters[name], value)) fields[name] = value;
  for (const _ in fields) return Buffer.from(spliceFields(body.toString(), fields));
  return undefined;
}

/** What the client asks for itself is left as it is. */
function isAsked(asked: unknown, wanted: unknown): boolean {
  if (asked === undefined || asked === null || asked === false) return false;
  return isObject(asked) ? JSON.stringify(asked) === JSON.stringify(wanted) : true;
}

const NOT_RETURNED: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "proxy-authenticate",
  "trailer",
  "upgrade",
  "set-cookie",
]);

/** What of a reply goes back to the client. An upstream may echo a key in a header or in an error; neither passes. */
export class Returned {
  readonly #secrets: SecretFinder | undefined;
  /** Values that hold no secret: most come with every reply. */
  readonly #clear = new Set<string>();

  constructor(secrets: SecretFinder | undefined) {
    this.#secrets = secrets;
  }

  /** Names and values in turn, as node:http takes them without another look. */
  headers(headers: Readonly<Record<string, string | string[] | undefined>>): string[] {
    const out: string[] = [];
    for (const name in headers) {
      const value = headers[name];
      if (value === undefined || NOT_RETURNED.has(name) || this.#value(name) !== name) continue;
      if (typeof value === "string") out.push(name, this.#value(value));
      else for (const each of value) out.push(name, this.#value(each));
    }
    return out;
  }

  /** Whether a body of this status waits until it is whole. */
  isHeld(status: number): boolean {
    return this.#secrets !== undefined && (status < 200 || status >= 300);
  }

  /** A reply whose body was held. No upstream is asked to compress one: if it does, the client gets the error decoded. */
  whole(headers: readonly string[], chunks: readonly Buffer[]): { headers: string[]; body: Buffer } {
    const given = Buffer.concat(chunks);
    const at = headers.indexOf("content-encoding");
    const read = at < 0 ? given : decoded(given, headers[at + 1]!);
    const body = this.#secrets!.isClear(read) ? read : Buffer.from(this.#secrets!.redact(read.toString()));
    return { headers: describing(headers, { bytes: body.length, isDecoded: read !== given }), body };
  }

  #value(value: string): string {
    if (this.#secrets === undefined || value.length < MIN_SECRET || this.#clear.has(value)) return value;
    const redacted = this.#secrets.redact(value);
    if (redacted !== value) return redacted;
    if (this.#clear.size >= MOST_NAMES) this.#clear.clear();
    this.#clear.add(value);
    return value;
  }
}

/** The headers of a body that may be another than the upstream's. */
function describing(
  headers: readonly string[],
  { bytes, isDecoded }: { bytes: number; isDecoded: boolean },
): string[] {
  const out: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    if (OF_BYTES.has(name) || (isDecoded && name === "content-encoding")) continue;
    out.push(name, headers[i + 1]!);
  }
  out.push("content-length", String(bytes));
  return out;
}

const OF_BYTES: ReadonlySet<string> = new Set(["content-length", "content-md5", "digest"]);

const DECODERS: Readonly<Record<string, typeof gunzipSync>> = {
  ...{ gzip: gunzipSync, "x-gzip": gunzipSync, deflate: inflateSync, br: brotliDecompressSync },
};
/** Of an error, decoded. */
const MAX_DECODED = 4 * 1024 * 1024;

/** A body in an encoding that cannot be undone may hold anything, and is replaced. */
function decoded(body: Buffer, encoding: string): Buffer {
  const name = encoding.trim().toLowerCase();
  if (name === "identity" || name === "") return body;
  try {
    return DECODERS[name]!(body, { maxOutputLength: MAX_DECODED });
  } catch {
    const message = "the upstream's error is compressed and cannot be read, so it is not passed on";
    return Buffer.from(
      JSON.stringify({ error: { message, type: "upstream_error", code: "unreadable-error" } }),
    );
  }
}
