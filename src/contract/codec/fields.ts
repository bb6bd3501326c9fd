/** The small schemas that records are made of. They decode the wire form to the typed form; `encodeWire` reverses it.
 *  u64 is a bigint in memory and a decimal string on the wire, because JSON numbers end at 2^53. */
import * as z from "zod";
import {
  columnTag,
  DIGEST_PATTERN,
  type Digest,
  type DType,
  type Id,
  idFault,
  isDigest,
  MAX_DEPTH,
  MAX_ID_BYTES,
} from "../../base/index.ts";
import type { RefusalCode } from "./refusal.ts";

/** A brand marks a string that was validated; it has no cost at run time. */
type Branded<T extends string> = z.ZodType<T, string>;

export const id = z
  .string()
  .refine((text) => idFault(text) === undefined, {
    error: (issue) => idFault(issue.input as string) ?? "is not an id",
    params: { refusal: "bad-id" },
  })
  .meta({
    id: "Id",
    description: `An identifier: 1 to ${MAX_ID_BYTES} bytes of UTF-8, no control characters, none of @ | / \\`,
    minLength: 1,
    maxLength: MAX_ID_BYTES,
    pattern: "^(?!\\.\\.)[^@|/\\\\\\u0000-\\u001f\\u007f-\\u009f]+$",
  }) as unknown as Branded<Id>;

export const digest = z
  .string()
  .regex(DIGEST_PATTERN, "is not a digest of the form sha256:<64 hex digits>")
  .meta({
    id: "Digest",
    description: "SHA-256 over tag, zero byte and content",
  }) as unknown as Branded<Digest>;

const U64_PATTERN = /^(0|[1-9][0-9]{0,19})$/;

export const u64 = z.codec(
  z
    .string()
    .regex(U64_PATTERN, "is not a decimal u64 string")
    .meta({ id: "U64", description: "An unsigned 64-bit integer in decimal digits" }),
  z.bigint().max(0xffff_ffff_ffff_ffffn, "exceeds 2^64−1"),
  { decode: (text) => BigInt(text), encode: (value) => value.toString() },
);

/** Text for people and foreign names (models, reasons): well-formed and bounded, otherwise unrestricted. */
export const text = (maxLength = 4096) =>
  z
    .string()
    .max(maxLength)
    .refine((value) => value.isWellFormed(), "holds a lone surrogate");

export const finite = z
  .number()
  .refine(Number.isFinite, { message: "is not finite", params: { refusal: "non-finite-number" } });
export const probability = z.number().min(0).max(1);
/** An integer from 0 to 2^53−1 (`int` refuses integers that a double cannot represent exactly). */
export const count = z.number().int().min(0);
/** Milliseconds since the Unix epoch. */
export const timeMs = count;
export const dataSource = z.enum(["real", "synthetic"]);

/** Any JSON, unchanged: nothing copied, nothing dropped (`z.json` drops a key named `__proto__`). */
export const json: z.ZodType<unknown> = z
  .unknown()
  .check((context) => {
    reportFault(context, jsonFault(context.value, 0));
  })
  .meta({ description: "Any JSON value" });

export const jsonObject = z
  .unknown()
  .check((context) => {
    const fault = isPlainObject(context.value)
      ? jsonFault(context.value, 0)
      : { path: [], message: "is not an object" };
    reportFault(context, fault);
  })
  .meta({ description: "Any JSON object", type: "object" }) as unknown as z.ZodType<Record<string, unknown>>;

/** Source format of a converted record, with the fields that only the old format has, so that converting back is
 *  exact. */
export const origin = z.strictObject({ format: id, fields: jsonObject });
export type Origin = z.output<typeof origin>;

/** A numeric column stored beside the record. The record holds the digest of the column. */
export const columnRef = <T extends DType>(dtype: T) =>
  z.strictObject({ digest, dtype: z.literal(dtype), length: count });
export type ColumnRef<T extends DType = DType> = { digest: Digest; dtype: T; length: number };

/** A blob that another record needs. An `external` blob may be outside the book (a 100 GB checkpoint). */
export interface Reference {
  digest: Digest;
  kind: string;
  field: string;
  external?: boolean;
  /** Of an external blob: kind and name for people, for example `policy router-2`. */
  what?: string;
}

export function columnReference(column: ColumnRef, field: string): Reference {
  return { digest: column.digest, kind: columnTag(column.dtype), field };
}

/** All digests in a JSON value: a superset of the references of the value. */
export function digestsIn(value: unknown, found: Digest[] = []): Digest[] {
  if (isDigest(value)) found.push(value);
  else if (Array.isArray(value)) for (const item of value) digestsIn(item, found);
  else if (typeof value === "object" && value !== null)
    for (const item of Object.values(value)) digestsIn(item, found);
  return found;
}

interface JsonFault {
  path: (string | number)[];
  message: string;
  refusal?: RefusalCode;
}

function reportFault(context: z.core.ParsePayload<unknown>, fault: JsonFault | undefined): void {
  if (fault === undefined) return;
  const { path, message, refusal } = fault;
  context.issues.push({ code: "custom", input: context.value, path, message, params: { refusal } });
}

/** First part of `value` that JSON cannot carry, with its path. */
function jsonFault(value: unknown, depth: number): JsonFault | undefined {
  switch (typeof value) {
    case "boolean":
      return undefined;
    case "string":
      return value.isWellFormed() ? undefined : { path: [], message: "holds a lone surrogate" };
    case "number":
      return Number.isFinite(value)
        ? undefined
        : { path: [], message: "is not finite", refusal: "non-finite-number" };
    case "object":
      return value === null ? undefined : containerFault(value, depth);
    default:
      return { path: [], message: value === undefined ? "is missing" : `is a ${typeof value}, not JSON` };
  }
}

function containerFault(value: object, depth: number): JsonFault | undefined {
  if (depth >= MAX_DEPTH) return { path: [], message: `is nested more than ${MAX_DEPTH} levels deep` };
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const fault = jsonFault(value[i], depth + 1);
      if (fault !== undefined) return { ...fault, path: [i, ...fault.path] };
    }
    return undefined;
  }
  if (!isPlainObject(value)) return { path: [], message: "is not a plain object" };
  for (const key of Object.keys(value)) {
    if (!key.isWellFormed()) return { path: [], message: "has a key with a lone surrogate" };
    const fault = jsonFault(value[key], depth + 1);
    if (fault !== undefined) return { ...fault, path: [key, ...fault.path] };
  }
  return undefined;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
