/** The small schemas that records are made of. Wire form in, typed form out; `encode` goes back.
 *  u64 is a bigint inside and a decimal string outside, because JSON numbers end at 2^53. */
import { z } from "zod";
import { columnTag, type DType } from "../base/arrays.ts";
import { DIGEST_PATTERN, type Digest, isDigest } from "../base/digest.ts";
import { type Id, idFault, MAX_ID_BYTES } from "../base/ids.ts";

/** A brand is a promise about a string that has passed; it costs nothing at run time. */
type Branded<T extends string> = z.ZodType<T, string>;

export const id = z
  .string()
  .refine((text) => idFault(text) === undefined, {
    error: (issue) => idFault(issue.input as string) ?? "is not an id",
    params: { refusal: "bad-id" },
  })
  .meta({
    description: `An identifier: 1 to ${MAX_ID_BYTES} bytes of UTF-8, no control characters, none of @ | / \\`,
    minLength: 1,
    maxLength: MAX_ID_BYTES,
    pattern: "^(?!\\.\\.)[^@|/\\\\\\u0000-\\u001f\\u007f-\\u009f]+$",
  }) as unknown as Branded<Id>;

export const digest = z
  .string()
  .regex(DIGEST_PATTERN, "is not a digest of the form sha256:<64 hex digits>") as unknown as Branded<Digest>;

export const u64 = z.codec(
  z.string().regex(/^(0|[1-9][0-9]{0,19})$/, "is not a decimal u64 string"),
  z.bigint().max(0xffff_ffff_ffff_ffffn, "exceeds 2^64−1"),
  { decode: (text) => BigInt(text), encode: (value) => value.toString() },
);

/** Text for people and foreign names (models, reasons): well-formed and bounded, otherwise free. */
export const text = (maxLength = 4096) =>
  z
    .string()
    .max(maxLength)
    .refine((value) => value.isWellFormed(), "holds a lone surrogate");

export const finite = z
  .number()
  .refine(Number.isFinite, { message: "is not finite", params: { refusal: "non-finite-number" } });
export const probability = z.number().min(0).max(1);
export const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
/** Milliseconds since the Unix epoch. */
export const timeMs = count;
export const dataSource = z.enum(["real", "synthetic"]);

export const json: z.ZodType<unknown> = z.json();

/** Where a converted record came from, and what only its old format can say, so that the way back is exact. */
export const origin = z.strictObject({ format: id, fields: z.record(z.string(), json) });
export type Origin = z.output<typeof origin>;

/** A numeric column kept beside the record: it enters the record by its own digest. */
export const columnRef = <T extends DType>(dtype: T) =>
  z.strictObject({ digest, dtype: z.literal(dtype), length: count });
export type ColumnRef<T extends DType = DType> = { digest: Digest; dtype: T; length: number };

/** A blob that another record needs. `external` ones may live outside the book (a 100 GB checkpoint). */
export interface Reference {
  digest: Digest;
  kind: string;
  field: string;
  external?: boolean;
}

export function columnReference(column: ColumnRef, field: string): Reference {
  return { digest: column.digest, kind: columnTag(column.dtype), field };
}

/** Every digest in a JSON value: the conservative view of what it refers to. */
export function digestsIn(value: unknown, found: Digest[] = []): Digest[] {
  if (isDigest(value)) found.push(value);
  else if (Array.isArray(value)) for (const item of value) digestsIn(item, found);
  else if (typeof value === "object" && value !== null)
    for (const item of Object.values(value)) digestsIn(item, found);
  return found;
}
