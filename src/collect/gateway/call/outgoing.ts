/** The request to an upstream. In: the client's request, and the target. Out: headers and body. Only a routed alias
 *  or a configured capture changes a body; every other byte passes unchanged. Pure. */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { type DialectName, dialectNamed, isObject, type RequestFacts } from "../dialects/index.ts";
import { MIN_SECRET, type SecretFinder } from "../redact/index.ts";
import type { Target } from "../upstream/index.ts";
import { renameModel, spliceFields } from "../wire/index.ts";

/** Client headers that mean nothing to an upstream, or that the gateway sets itself. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  ...["host", "connection", "keep-alive", "proxy-connection", "te", "trailer"],
  ...["transfer-encoding", "upgrade", "expect", "content-length"],
  // A compressed reply could not be recorded while it passes.
  ...["accept-encoding", "origin", "referer", "forwarded", "x-forwarded-for", "x-real-ip"],
]);
/** Names of credential headers: x-goog-api-key, authorization, cookie, x-amz-security-token, and other names that
 *  clients use. */
const CREDENTIAL = /auth|token|secret|passw|credential|cookie|signature|jwt|dpop|(?:^|[-_])key$|api-?key/;
/** An idempotency key identifies a repeated request and is not a credential. */
const NO_CREDENTIAL = /(?:^|-)idempotency-key$/;

export function isCredentialHeader(name: string): boolean {
  return CREDENTIAL.test(name) && !NO_CREDENTIAL.test(name);
}

/** Cache of outgoing names by incoming name; undefined if the header is not passed. Clients use few names, in the
 *  spelling of their library. */
const PASSED = new Map<string, string | undefined>();
const MOST_NAMES = 1000;

/** Takes and returns names and values alternately, the form of undici. */
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

/** Path and query without keys. Some clients put a key into the query. */
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

/** Undefined if the body passes unchanged. `text` is the body as text. */
export function rewrittenBody(
  body: Buffer,
  request: RequestFacts,
  { text, dialect, target }: { text: string; dialect: DialectName; target: Target },
): Buffer | undefined {
  const { model, capture } = target;
  const isNamed = model === request.model;
  if (capture === undefined)
    return isNamed ? undefined : renameModel(body, { text, asked: request.model, name: target.modelJson });
  const fields: Record<string, unknown> = isNamed ? {} : { model };
  const tokenFields =
    capture.tokens === undefined ? {} : dialectNamed(dialect).tokenFields(capture.tokens, request.stream);
  for (const [name, wanted] of Object.entries({ ...tokenFields, ...capture.fields })) {
    const asked = request.parameters[name];
    const value = withWanted(asked, wanted);
    if (value !== asked) fields[name] = value;
  }
  for (const _ in fields) return Buffer.from(spliceFields(text, fields));
  return undefined;
}

/** The client's value, completed by the captured one; the same value if it lacks nothing. The gateway replaces `false`
 *  and null, because the capture needs the field. It merges two objects, so that other fields of the client stay. */
function withWanted(asked: unknown, wanted: unknown): unknown {
  if (asked === undefined || asked === null || asked === false) return wanted;
  if (!isObject(asked)) return asked;
  if (!isObject(wanted)) return wanted;
  const merged = Object.entries(wanted).map(
    ([name, value]) => [name, withWanted(asked[name], value)] as const,
  );
  const isComplete = merged.every(([name, value]) => value === asked[name]);
  return isComplete ? asked : { ...asked, ...Object.fromEntries(merged) };
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

/** Filters a reply for the client. An upstream may echo a key in a header or in an error; the filter removes both. */
export class Returned {
  readonly #secrets: SecretFinder | undefined;
  /** Cache of values without a secret: most values come with every reply. */
  readonly #clear = new Set<string>();

  constructor(secrets: SecretFinder | undefined) {
    this.#secrets = secrets;
  }

  /** Names and values alternately, the form that node:http accepts without another check. */
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

  /** True if a body of this status is held until it is complete. */
  isHeld(status: number): boolean {
    return this.#secrets !== undefined && (status < 200 || status >= 300);
  }

  /** A reply whose body was held. The gateway asks no upstream to compress. If one does, the client gets the error
   *  decoded. */
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

/** Headers for a body that may differ from the upstream's. */
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
/** Limit of a decoded error, in bytes. */
const MAX_DECODED = 4 * 1024 * 1024;

/** Replaces a body whose encoding cannot be decoded, because it may hold a secret. */
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
