/** The features of a policy: the spec, its digest, and the place of every feature in the vector.
 *  In: a spec as JSON. Out: the parsed spec and its layout. Two policies with the same digest read the same numbers.
 *  A checkpoint names the digest of its spec. Does not read requests. */
import * as z from "zod";
import { type Digest, digestJson, isObject, RollbookError, withRemedy } from "../base/index.ts";
import { configProblem } from "../contract/index.ts";

const name = z.string().min(1).max(128);

const featureSpecSchema = z.strictObject({
  schema: z.literal("rollbook.feature-spec.v1"),
  /** Buckets of hashed word 1- and 2-grams: a power of two, or 0 for none. */
  wordBuckets: z
    .number()
    .int()
    .min(0)
    .max(1 << 24),
  /** Weight of a word: ln(1 + occurrences), or that times its rarity in training ("idf"). */
  wordWeights: z.enum(["count", "idf"]),
  /** Number of words read of a prompt. Of a longer prompt, the first half and the last half of this number are read. */
  maxWords: z.number().int().min(2).max(100_000),
  /** Structured fields of the context. A number is squashed; a category falls into one of its buckets. */
  fields: z
    .array(
      z.discriminatedUnion("kind", [
        z.strictObject({ name, kind: z.literal("number") }),
        z.strictObject({ name, kind: z.literal("category"), buckets: z.number().int().min(2).max(65_536) }),
      ]),
    )
    .max(1024),
  /** Features of a candidate (price, latency, history), shared by all candidates. */
  candidate: z.array(name).max(1024),
});
export type FeatureSpec = z.output<typeof featureSpecSchema>;

/** The features of a value policy. Words, pairs of words and categories share one hashed space. Training decides which
 *  buckets are columns, and how values are scaled. */
const valueSpecSchema = z.strictObject({
  schema: z.literal("rollbook.feature-spec.v2"),
  /** Buckets of the hashed space: a power of two. */
  wordBuckets: z
    .number()
    .int()
    .min(2)
    .max(1 << 24),
  /** Number of words read of a prompt. Of a longer prompt, the first half and the last half of this number are read. */
  maxWords: z.number().int().min(2).max(100_000),
  /** Rules for letters. Default: only ASCII is lower-cased, and every character beyond ASCII is a letter. */
  letters: z.optional(z.literal("unicode")),
  /** Fields of the context. A number is standardised; every value of a category is its own column. */
  fields: z.array(z.strictObject({ name, kind: z.enum(["number", "category"]) })).max(65_536),
  /** Embeddings of the prompts: the model that makes them, and their length. Each number is standardised. */
  embedding: z.optional(
    z.strictObject({ model: z.string().min(1).max(256), size: z.number().int().min(1).max(65_536) }),
  ),
});
export type ValueSpec = z.output<typeof valueSpecSchema>;
export type AnyFeatureSpec = FeatureSpec | ValueSpec;

export const DEFAULT_FEATURES: FeatureSpec = {
  schema: "rollbook.feature-spec.v1",
  wordBuckets: 32_768,
  wordWeights: "count",
  maxWords: 2048,
  fields: [],
  candidate: [],
};

/** Measures of every prompt, in the order of the vector. */
export const PROMPT_FEATURES = [
  "bias",
  "chars",
  "words",
  "lines",
  "word length",
  "digits",
  "capitals",
  "punctuation",
  "code marks",
  "math marks",
  "questions",
  "latin beyond ascii",
  "cyrillic and greek",
  "han, kana, hangul",
  "other scripts",
] as const;

export interface FeatureLayout {
  readonly spec: FeatureSpec;
  readonly digest: Digest;
  /** First place of each field. A number takes two places: the value, and 1 if it is present. */
  readonly fieldAt: readonly number[];
  /** Number of places before the words. */
  readonly denseSize: number;
  readonly size: number;
}

/** Parses a spec of either version. Its `schema` field states the version. */
export function parseAnySpec(value: unknown, where: string): AnyFeatureSpec {
  const second = isObject(value) && value.schema === "rollbook.feature-spec.v2";
  return second ? parseSpec(valueSpecSchema, value, where) : parseFeatureSpec(value, where);
}

export function parseFeatureSpec(value: unknown, where: string): FeatureSpec {
  return parseSpec(featureSpecSchema, value, where);
}

function parseSpec<Spec extends AnyFeatureSpec>(
  schema: z.ZodType<Spec>,
  value: unknown,
  where: string,
): Spec {
  const result = schema.safeParse(value);
  const problem = result.success ? faultOf(result.data) : configProblem(schema, result.error.issues, value);
  if (problem === undefined) return result.data!;
  throw new RollbookError(
    "bad-feature-spec",
    { where },
    `${where}: ${withRemedy(problem, "Correct the feature spec.")}`,
  );
}

export function layOut(spec: FeatureSpec): FeatureLayout {
  parseFeatureSpec(spec, "feature spec");
  const fieldAt: number[] = [];
  let at: number = PROMPT_FEATURES.length;
  for (const field of spec.fields) {
    fieldAt.push(at);
    at += field.kind === "number" ? 2 : field.buckets;
  }
  return {
    spec,
    digest: digestFeatureSpec(spec),
    fieldAt,
    denseSize: at,
    size: at + spec.wordBuckets,
  };
}

export function digestFeatureSpec(spec: AnyFeatureSpec): Digest {
  return digestJson(spec.schema, spec);
}

function faultOf(spec: AnyFeatureSpec): string | undefined {
  if ((spec.wordBuckets & (spec.wordBuckets - 1)) !== 0)
    return `wordBuckets is ${spec.wordBuckets}, not a power of two`;
  const names = spec.fields.map((field) => field.name);
  if (new Set(names).size !== names.length) return "two fields share one name";
  if (!("candidate" in spec)) return undefined;
  if (new Set(spec.candidate).size !== spec.candidate.length) return "two candidate features share one name";
  return undefined;
}
