/** Records: versioned, canonical, named by their digest. The kind of a record is its `schema` string, which is also the
 *  domain tag of its digest. */
import * as z from "zod";
import {
  canonicalize,
  type Digest,
  decodeUtf8,
  digestBytes,
  isCanonical,
  isObject,
  parseJson,
  plural,
  RollbookError,
  reasonOf,
} from "../../base/index.ts";
import { INVALID } from "./byte-source.ts";
import { compileDecoder, type Decoder } from "./decoder.ts";
import type { Reference } from "./fields.ts";
import { deepest, issueWords, valueAt } from "./issue-words.ts";
import { type RefusalCode, refuse } from "./refusal.ts";

export interface Sealed<T> {
  readonly kind: string;
  readonly digest: Digest;
  readonly bytes: Uint8Array;
  readonly record: T;
}

export interface RecordType<Schema extends z.ZodType = z.ZodType> {
  readonly kind: string;
  readonly summary: string;
  readonly schema: Schema;
  /** Decodes canonical bytes to the typed record, or returns INVALID. Gives no reason; the schema supplies it. */
  readonly decode: Decoder;
  /** All references of the record; `verify` follows them. */
  references(record: z.output<Schema>): Reference[];
  /** Rules that a schema cannot express. Throws a refusal. */
  check(record: z.output<Schema>): void;
}

export type RecordOf<T extends RecordType> = z.output<T["schema"]>;

export function defineRecord<
  Shape extends z.ZodRawShape,
  Kind extends `rollbook.${string}.v${number}`,
>(options: {
  kind: Kind;
  summary: string;
  shape: Shape;
  references?: (record: z.output<z.ZodObject<Shape>>) => Reference[];
  check?: (record: z.output<z.ZodObject<Shape>>) => void;
}) {
  const schema = z.strictObject({ schema: z.literal(options.kind), ...options.shape });
  let decoder: Decoder | undefined;
  return {
    kind: options.kind,
    summary: options.summary,
    schema,
    decode(bytes: Uint8Array) {
      decoder ??= compileDecoder(schema); // one command reads few kinds
      return decoder(bytes);
    },
    references: (options.references ?? (() => [])) as (record: z.output<typeof schema>) => Reference[],
    check: (options.check ?? (() => {})) as (record: z.output<typeof schema>) => void,
  };
}

/** Encodes a record as canonical bytes and decodes them again, so that every sealed record is readable. */
export function seal<T extends RecordType>(
  type: T,
  record: Omit<RecordOf<T>, "schema">,
): Sealed<RecordOf<T>> {
  const full = { ...record, schema: type.kind } as RecordOf<T>;
  const bytes = Buffer.from(canonicalize(encodeWire(type, full)));
  const opened = openRecord(type, bytes);
  return { kind: type.kind, digest: digestBytes(type.kind, bytes), bytes, record: opened };
}

/** Reads sealed bytes, which must be the canonical form of a valid record. Does not compare the digest, because the
 *  store has already recomputed it. */
export function openRecord<T extends RecordType>(
  type: T,
  bytes: Uint8Array,
  where: string = type.kind,
): RecordOf<T> {
  const record = type.decode(bytes);
  if (record === INVALID) throw refuseRecord(type, parseCanonical(bytes, where), where);
  checkRules(type, record as RecordOf<T>, where);
  return record as RecordOf<T>;
}

/** Parses bytes that must be canonical JSON. */
export function parseCanonical(bytes: Uint8Array, where: string): unknown {
  const text = decodeUtf8(bytes, where);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    parseJson(text, where); // throws with a position; JSON.parse has none
  }
  if (!isCanonical(text, value)) {
    throw refuse(
      "not-canonical",
      { where },
      `${where}: the bytes are not the canonical form (RFC 8785) of their own content. Seal the record again.`,
    );
  }
  return value;
}

/** Decodes a JSON value of any formatting to a record: checks kind, version, schema and rules. */
export function decodeWire<T extends RecordType>(type: T, value: unknown, where: string): RecordOf<T> {
  let text: string;
  try {
    text = canonicalize(value);
  } catch (cause) {
    throw refuseRecord(type, value, where, cause);
  }
  return openRecord(type, Buffer.from(text), where);
}

function checkRules<T extends RecordType>(type: T, record: RecordOf<T>, where: string): void {
  try {
    type.check(record);
  } catch (error) {
    if (!(error instanceof RollbookError) || error.message.startsWith(where)) throw error;
    throw new RollbookError(error.code, { where, ...error.fields }, `${where}: ${error.message}`, {
      cause: error,
    });
  }
}

/** Error for a `value` that is not a valid record: a wrong kind, or the first fault that zod finds. */
function refuseRecord(type: RecordType, value: unknown, where: string, cause?: unknown): RollbookError {
  requireKind(type.kind, value, where);
  const { error } = z.safeDecode(type.schema, value as never);
  if (error !== undefined) return refuseIssues(error.issues, value, where);
  const reason = cause === undefined ? `does not fit the schema of ${type.kind}.` : reasonOf(cause);
  return refuse("bad-record", { where }, `${where}: ${reason}`, { cause });
}

/** Decodes the exchange form of a record with zod. The exchange form is read and written but never sealed. */
export function decodeExchange<T extends RecordType>(type: T, value: unknown, where: string): RecordOf<T> {
  requireKind(type.kind, value, where);
  const { data, error } = z.safeDecode(type.schema, value as never);
  if (error !== undefined) throw refuseIssues(error.issues, value, where);
  return data as RecordOf<T>;
}

/** Wire form (plain JSON, u64 as strings) of a typed record. */
export function encodeWire<T extends RecordType>(type: T, record: RecordOf<T>): unknown {
  try {
    return encodeValue(record);
  } catch (cause) {
    throw refuse("bad-record", { kind: type.kind }, `${type.kind}: ${reasonOf(cause)}`, { cause });
  }
}

/** Only bigints have a different wire form; every other value is unchanged. */
function encodeValue(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return value.map(encodeValue);
  if (typeof value !== "object" || value === null) return value;
  const out: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue;
    // A plain assignment to __proto__ would change the prototype instead of adding a key.
    if (key === "__proto__")
      Object.defineProperty(out, key, {
        value: encodeValue(item),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    else out[key] = encodeValue(item);
  }
  return out;
}

function requireKind(kind: string, value: unknown, where: string): void {
  if (!isObject(value)) {
    throw refuse("bad-record", { where, kind }, `${where}: expected a ${kind} object.`);
  }
  const found = value.schema;
  if (found === kind) return;
  const remedy = isNewerVersion(found, kind) ? NEEDS_NEWER : `Expected "${kind}".`;
  throw refuse(
    "unknown-schema",
    { where, expected: kind, actual: found },
    `${where}: schema is ${JSON.stringify(found) ?? "missing"}. ${remedy}`,
  );
}

/** Remedy for a record of a version that is newer than this package. */
export const NEEDS_NEWER = "Upgrade rollbook to read it: a newer rollbook wrote it.";

/** True if `found` is a later version of `kind`. */
export function isNewerVersion(found: unknown, kind: string): boolean {
  const [, name, version] = /^(.*)\.v(\d+)$/.exec(kind) ?? [];
  const [, foundName, foundVersion] = /^(.*)\.v(\d+)$/.exec(typeof found === "string" ? found : "") ?? [];
  return name !== undefined && foundName === name && Number(foundVersion) > Number(version);
}

/** Refusal for schema issues of `value`: the first issue, with its code, path and field. */
export function refuseIssues(
  issues: readonly z.core.$ZodIssue[],
  value: unknown,
  where: string,
): RollbookError {
  const issue = deepest(issues);
  const field = `$${issue.path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("")}`;
  const params = (issue as { params?: { refusal?: RefusalCode } }).params;
  const actual = valueAt(value, issue.path);
  const code: RefusalCode = params?.refusal ?? (isNonFinite(actual) ? "non-finite-number" : "bad-record");
  const more = issues.length > 1 ? `. It has ${plural(issues.length - 1, "more fault")}` : "";
  const message = `${where}: ${field} ${issueWords(issue, value)}. Correct the field${more}.`;
  return refuse(code, { where, field, issues: issues.length }, message);
}

function isNonFinite(value: unknown): boolean {
  return typeof value === "number" && !Number.isFinite(value);
}
