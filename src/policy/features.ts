/** Turns a question into numbers: a sparse vector of the context, a short dense vector of each candidate.
 *  In: a feature spec, then contexts and candidates. Out: vectors. Exact arithmetic only: a question has the same
 *  vector on every engine.
 *  The vectors are scratch space of the reader, valid until its next call; copy them to keep them. */
import { log1p, RollbookError } from "../base/index.ts";
import type { DecisionCandidate, DecisionContext } from "./decision.ts";
import { type FeatureLayout, type FeatureSpec, layOut, PROMPT_FEATURES } from "./feature-spec.ts";
import { hashText, mix, type PromptCounts, scanPrompt } from "./scan-prompt.ts";

/** Places of the dense part come first, in ascending order. Places of words follow in the order of first occurrence. */
export interface SparseVector {
  readonly indices: Int32Array;
  readonly values: Float64Array;
  readonly count: number;
}

export interface FeatureReader extends FeatureLayout {
  context(context: DecisionContext): SparseVector;
  /** One squashed value per name of `spec.candidate`. A candidate must have all of them. */
  candidate(candidate: DecisionCandidate): Float64Array;
}

/** `wordScale`: one factor per bucket, learned with the policy. Required for "idf"; absent for "count". */
export function makeFeatureReader(spec: FeatureSpec, wordScale?: Float64Array): FeatureReader {
  const layout = layOut(spec);
  checkScale(spec, wordScale);
  const hashes = new Int32Array(spec.maxWords);
  const capacity = layout.denseSize + 2 * spec.maxWords;
  const vector = { indices: new Int32Array(capacity), values: new Float64Array(capacity), count: 0 };
  // Number of occurrences of each bucket in the vector under construction.
  const tallies = new Int32Array(spec.wordBuckets);
  const dense = new Float64Array(spec.candidate.length);
  const measures = new Float64Array(PROMPT_FEATURES.length - 1);
  return {
    ...layout,
    context(context) {
      const counts = scanPrompt(context.prompt, hashes);
      vector.count = 0;
      addPrompt(vector, counts, measures);
      addFields(vector, layout, context);
      const words = Math.min(counts.words, hashes.length);
      if (spec.wordBuckets > 0) addWords(vector, { hashes, words, tallies, at: layout.denseSize, wordScale });
      return vector;
    },
    candidate(candidate) {
      spec.candidate.forEach((name, i) => {
        const value = candidate.features[name];
        if (value === undefined || !Number.isFinite(value)) throw missingFeature(candidate.id, name, value);
        dense[i] = squash(value);
      });
      return dense;
    },
  };
}

/** sign(x)·ln(1 + |x|). Puts prices, tokens and milliseconds on one scale. */
export function squash(value: number): number {
  return value < 0 ? -log1p(-value) : log1p(value);
}

export interface GrowingVector extends SparseVector {
  count: number;
}

function push(vector: GrowingVector, index: number, value: number): void {
  if (value === 0) return;
  vector.indices[vector.count] = index;
  vector.values[vector.count++] = value;
}

function addPrompt(vector: GrowingVector, counts: PromptCounts, measures: Float64Array): void {
  promptMeasures(counts, measures);
  push(vector, 0, 1);
  for (let i = 0; i < measures.length; i++) push(vector, i + 1, measures[i]!);
}

/** The measures of PROMPT_FEATURES in their order, without the bias. The factors keep ordinary prompts near 1. */
export function promptMeasures(counts: PromptCounts, out: Float64Array): void {
  const { chars, words, letters } = counts;
  const share = chars === 0 ? 0 : 1 / chars;
  out[0] = logOfCount(chars) / 8;
  out[1] = logOfCount(words) / 6;
  out[2] = logOfCount(counts.lines) / 3;
  out[3] = words === 0 ? 0 : letters / words / 8;
  out[4] = counts.digits * share * 4;
  out[5] = counts.capitals * share * 4;
  out[6] = counts.punctuation * share * 8;
  out[7] = counts.code * share * 8;
  out[8] = counts.math * share * 8;
  out[9] = logOfCount(counts.questions);
  out[10] = counts.latin * share * 4;
  out[11] = counts.greek * share;
  out[12] = counts.han * share;
  out[13] = counts.other * share;
}

function addFields(
  vector: GrowingVector,
  { spec, fieldAt }: FeatureLayout,
  { fields }: DecisionContext,
): void {
  for (let i = 0; i < spec.fields.length; i++) {
    const field = spec.fields[i]!;
    const value = fields[field.name];
    if (value === undefined) continue;
    const at = fieldAt[i]!;
    if (field.kind === "category") {
      push(vector, at + (hashText(String(value)) % field.buckets), 1);
      continue;
    }
    const number = typeof value === "boolean" ? Number(value) : value;
    if (typeof number !== "number" || !Number.isFinite(number)) throw badField(field.name, value);
    push(vector, at, squash(number));
    push(vector, at + 1, 1);
  }
}

/** ln(1 + count) of every 1- and 2-gram, scaled to length 1, so that long prompts weigh the same as short ones. */
function addWords(
  vector: GrowingVector,
  options: {
    hashes: Int32Array;
    words: number;
    tallies: Int32Array;
    at: number;
    wordScale: Float64Array | undefined;
  },
): void {
  const { hashes, words, tallies, at, wordScale } = options;
  const { indices, values } = vector;
  const mask = tallies.length - 1;
  const from = vector.count;
  let count = from;
  let before = 0;
  for (let i = 0; i < words; i++) {
    const word = hashes[i]!;
    const bucket = mix(word) & mask;
    const tally = tallies[bucket]!;
    tallies[bucket] = tally + 1;
    if (tally === 0) indices[count++] = bucket;
    if (i > 0) {
      const pair = mix(Math.imul(before, 31) ^ word ^ 0x5bd1e995) & mask;
      const pairTally = tallies[pair]!;
      tallies[pair] = pairTally + 1;
      if (pairTally === 0) indices[count++] = pair;
    }
    before = word;
  }
  let sum = 0;
  for (let i = from; i < count; i++) {
    const bucket = indices[i]!;
    const plain = logOfCount(tallies[bucket]!);
    const value = wordScale === undefined ? plain : plain * wordScale[bucket]!;
    indices[i] = at + bucket;
    values[i] = value;
    sum += value * value;
    tallies[bucket] = 0;
  }
  const scale = sum === 0 ? 0 : 1 / Math.sqrt(sum);
  for (let i = from; i < count; i++) values[i] = values[i]! * scale;
  vector.count = count;
}

const LOGS = Float64Array.from({ length: 1024 }, (_, count) => log1p(count));

/** ln(1 + count). Most counts come from a table. */
function logOfCount(count: number): number {
  return count < LOGS.length ? LOGS[count]! : log1p(count);
}

function checkScale({ wordWeights, wordBuckets }: FeatureSpec, scale: Float64Array | undefined): void {
  const wanted = wordWeights === "idf" ? wordBuckets : 0;
  if ((scale?.length ?? 0) === wanted) return;
  throw new RollbookError(
    "bad-feature-spec",
    { wordWeights, wanted, given: scale?.length ?? 0 },
    `word weights by ${wordWeights} need ${wanted} factors, ${scale?.length ?? 0} are given. Take them from the checkpoint.`,
  );
}

function missingFeature(candidate: string, name: string, value: number | undefined): RollbookError {
  return new RollbookError(
    "missing-feature",
    { candidate, name, value: String(value) },
    `candidate ${candidate}: feature ${name} is ${value ?? "missing"}. The policy was trained with it: give a finite number.`,
  );
}

function badField(name: string, value: unknown): RollbookError {
  return new RollbookError(
    "bad-field",
    { name, value: String(value) },
    `field ${name} is ${JSON.stringify(value) ?? String(value)}; the feature spec says it is a finite number.`,
  );
}
