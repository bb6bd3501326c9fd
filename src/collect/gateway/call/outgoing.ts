/** The request as it goes to an upstream. In: what the client sent, and the target. Out: headers and body. A body
 *  changes only where a routed alias or a configured capture says so; every other byte passes as it came. Pure. */
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
      if (value === undefined || NOT_RETURNED.has(name)) continue;
      if (typeof value === "string") out.push(name, this.#value(value));
      else for (const each of value) out.push(name, this.#value(each));
    }
    return out;
  }

  /** Whether a body of this status waits until it is whole. */
  isHeld(status: number): boolean {
    return this.#secrets !== undefined && (status < 200 || status >= 300);
  }

  /** A body that was held. */
  body(chunks: readonly Buffer[]): Buffer {
    const body = Buffer.concat(chunks);
    return this.#secrets!.isClear(body) ? body : Buffer.from(this.#secrets!.redact(body.toString()));
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
export function withLength(headers: readonly string[], bytes: number): string[] {
  const out: string[] = [];
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i] !== "content-length" && headers[i] !== "content-md5" && headers[i] !== "digest")
      out.push(headers[i]!, headers[i + 1]!);
  out.push("content-length", String(bytes));
  return out;
}
