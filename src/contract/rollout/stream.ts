/** A stream: the choices of one policy family in one rollout, token by token or step by step. Token streams hold their
 *  numbers in columns. Mask 1 marks a token that the policy sampled, 0 a token that it only read. */
import * as z from "zod";
import { type ColumnOf, firstNonFinite } from "../../base/index.ts";
import {
  columnRef,
  columnReference,
  count,
  digest,
  finite,
  id,
  onesInside,
  probability,
  type Reference,
  refuse,
  scanMask,
  text,
} from "../codec/index.ts";
import { revisionKey } from "../policy/index.ts";

/** `sampling`: the distribution that was sampled, after temperature and filters. `model`: the raw softmax. */
export const logprobKind = z.enum(["sampling", "model"]);
export type LogprobKind = z.output<typeof logprobKind>;

/** Tokens start … end−1 came from one call and one revision: a hot swap starts a new segment. */
const segment = z.strictObject({ start: count, end: count, call: z.optional(count), revision: revisionKey });

export const tokenStream = z.strictObject({
  level: z.literal("token"),
  family: id,
  logprobKind,
  tokenizer: z.optional(digest),
  length: count,
  samples: count,
  columns: z.strictObject({
    ids: columnRef("u32"),
    logprobs: columnRef("f32"),
    mask: columnRef("u8"),
    turns: z.optional(columnRef("u32")),
    /** Absent means unlabelled, never 0. */
    rewards: z.optional(columnRef("f32")),
    /** Advantages claimed by the producer of the artifact. A batch computes its own unless configured to use the
     *  claims. */
    advantages: z.optional(columnRef("f32")),
  }),
  segments: z.array(segment).min(1).max(100_000),
});
export type TokenStream = z.output<typeof tokenStream>;

const candidate = z.strictObject({
  id: text(512),
  selectable: z.boolean(),
  /** Reasons why the candidate cannot be chosen; empty if it is selectable. */
  reasons: z.array(id).max(64),
  /** Probability in the final distribution: after constraints, floor, fallback and exploration. Null: not logged. */
  probability: z.nullable(probability),
  /** Supervised value of choosing this candidate, if known. Never filled from another score. */
  label: z.optional(finite),
  /** Score relative to the state it was observed in. It does not telescope and is never a label. */
  diagnostic: z.optional(finite),
  /** Origin of the candidate: a generator, a rule, a person. */
  provenance: z.optional(text(512)),
  features: z.optional(z.array(finite).max(100_000)),
  /** Facts about the candidate that the policy saw, by name: price, latency, history. */
  seen: z.optional(z.record(text(128), finite)),
});
export type Candidate = z.output<typeof candidate>;

export const step = z.strictObject({
  revision: revisionKey,
  call: z.optional(count),
  turn: count,
  /** Index of the step that this step continues, if not the previous step: a fork shares its prefix. */
  parent: z.optional(count),
  context: z.optional(z.array(finite).max(100_000)),
  /** Facts about the request that the policy saw beside its prompt, by name. */
  seen: z.optional(z.record(text(128), z.union([text(1024), finite, z.boolean()]))),
  candidates: z.array(candidate).min(1).max(100_000),
  chosen: count,
  /** Error of the state before and after the choice, if measured: gains over a chain telescope. */
  before: z.optional(finite),
  after: z.optional(finite),
  /** Null: unlabelled. */
  reward: z.nullable(finite),
  advantage: z.optional(finite),
  reason: z.optional(text(512)),
  /** Constraints that the chosen candidate breaks. The router chose it because every candidate breaks one. */
  relaxed: z.optional(z.array(id).min(1).max(64)),
  /** Probability of the choice, if the log has only that and not the whole distribution. */
  propensity: z.optional(probability),
  /** Present if the policy's probabilities are shares of Monte Carlo draws: the number of draws, and the least
   *  probability of a selectable candidate. The choice was drawn from the logged distribution, so its probability is
   *  exact. */
  monteCarlo: z.optional(z.strictObject({ draws: z.number().int().min(1), floor: probability })),
  /** Policy behind the router that `revision` names, and its confidence. The floor may have overruled the policy. */
  policy: z.optional(revisionKey),
  confidence: z.optional(probability),
  /** Probabilities of a second router that did not act, one per candidate. */
  shadow: z.optional(
    z.strictObject({
      revision: revisionKey,
      chosen: count,
      probabilities: z.array(probability).min(1).max(100_000),
    }),
  ),
});
export type Step = z.output<typeof step>;

export const stepStream = z.strictObject({
  level: z.literal("step"),
  family: id,
  steps: z.array(step).min(1).max(100_000),
});
export type StepStream = z.output<typeof stepStream>;

export const stream = z.discriminatedUnion("level", [tokenStream, stepStream]);
export type Stream = z.output<typeof stream>;
export type Level = Stream["level"];

export type TokenColumns = { ids: ColumnOf["u32"]; logprobs: ColumnOf["f32"]; mask: ColumnOf["u8"] } & {
  turns?: ColumnOf["u32"];
  rewards?: ColumnOf["f32"];
  advantages?: ColumnOf["f32"];
};

export const TOKEN_COLUMNS = {
  ids: "u32",
  logprobs: "f32",
  mask: "u8",
  turns: "u32",
  rewards: "f32",
  advantages: "f32",
} as const;

/** Column names in the order of a sealed record. */
export const COLUMN_NAMES = Object.keys(TOKEN_COLUMNS).sort() as (keyof typeof TOKEN_COLUMNS)[];

export function streamReferences(item: Stream, field: string, found: Reference[]): void {
  if (item.level === "step") return;
  for (const name of COLUMN_NAMES) {
    const column = item.columns[name];
    if (column !== undefined) found.push(columnReference(column, `${field}.columns.${name}`));
  }
}

/** Number of policy choices in a stream. */
export function sampleCount(item: Stream): number {
  return item.level === "token" ? item.samples : item.steps.length;
}

/** Checks the rules of one stream that its schema cannot express. */
export function checkStream(item: Stream, field: string): void {
  if (sampleCount(item) === 0)
    throw refuse(
      "empty-samples",
      { field },
      `${field} holds no sample. Record at least one choice or leave the stream out.`,
    );
  if (item.level === "token") checkTokenShape(item, field);
  else
    item.steps.forEach((each, i) => {
      checkStep(each, `${field}.steps[${i}]`, i);
      checkContinuity(item.steps, i, `${field}.steps[${i}]`);
    });
}

/** Index of the step that step `index` continues; -1 for the first. */
export function parentOf(steps: readonly Pick<Step, "parent">[], index: number): number {
  return steps[index]!.parent ?? index - 1;
}

function checkTokenShape(item: TokenStream, field: string): void {
  for (const name of COLUMN_NAMES) {
    const column = item.columns[name];
    if (column !== undefined && column.length !== item.length) {
      throw refuse(
        "length-mismatch",
        { field: `${field}.columns.${name}`, expected: item.length, actual: column.length },
        `${field}.columns.${name} has ${column.length} values, the stream has ${item.length} tokens. Give every column one value per token.`,
      );
    }
  }
  let end = 0;
  for (const [i, part] of item.segments.entries()) {
    if (part.start < end || part.end <= part.start || part.end > item.length) {
      throw refuse(
        "bad-mask",
        { field: `${field}.segments[${i}]` },
        `${field}.segments[${i}] (${part.start} to ${part.end}) overlaps another, is empty, or leaves the stream.`,
      );
    }
    end = part.end;
  }
}

const SUM_TOLERANCE = 1e-9;

function checkStep(each: Step, field: string, index: number): void {
  const bad = (message: string) => refuse("bad-choice", { field }, `${field}: ${message}`);
  const chosen = each.candidates[each.chosen];
  if (chosen === undefined) throw bad(`chose candidate ${each.chosen} of ${each.candidates.length}.`);
  if (!chosen.selectable) throw bad(`chose ${chosen.id}, which is not selectable.`);
  if (each.parent !== undefined && each.parent >= index)
    throw bad(`continues step ${each.parent}, which does not come before it.`);
  if (new Set(each.candidates.map((one) => one.id)).size !== each.candidates.length)
    throw bad("two candidates share one id.");
  for (const one of each.candidates) {
    if (one.selectable && one.reasons.length > 0)
      throw bad(`${one.id} is selectable and yet has reasons against it.`);
    if (!one.selectable && (one.probability ?? 0) > 0)
      throw bad(`${one.id} is not selectable and yet has probability ${one.probability}.`);
  }
  checkDistribution(each, chosen, bad);
  checkShadow(each, bad);
}

function checkShadow({ shadow, candidates }: Step, bad: (message: string) => Error): void {
  if (shadow === undefined) return;
  const { probabilities, chosen } = shadow;
  if (probabilities.length !== candidates.length || chosen >= candidates.length)
    throw bad(`its shadow decides among ${probabilities.length} candidates, not ${candidates.length}.`);
  const sum = probabilities.reduce((total, one) => total + one, 0);
  if (Math.abs(sum - 1) > SUM_TOLERANCE) throw bad(`its shadow's probabilities sum to ${sum}, not 1.`);
}

function checkDistribution(each: Step, chosen: Candidate, bad: (message: string) => Error): void {
  const logged = each.candidates.filter((one) => one.probability !== null);
  const { monteCarlo, propensity } = each;
  if (propensity === 0) throw bad(`chose ${chosen.id} with probability 0.`);
  if (logged.length === 0) {
    if (monteCarlo === undefined) return;
    throw bad("tells how its probabilities were drawn, and logs none.");
  }
  if (propensity !== undefined)
    throw bad("logs the whole distribution and a propensity beside it. The distribution is enough.");
  if (logged.length < each.candidates.length)
    throw bad(
      "some candidates have a probability and some have none. Log the whole distribution or null throughout.",
    );
  const sum = each.candidates.reduce((total, one) => total + one.probability!, 0);
  if (Math.abs(sum - 1) > SUM_TOLERANCE) throw bad(`the probabilities sum to ${sum}, not 1.`);
  if (chosen.probability === 0) throw bad(`chose ${chosen.id} with probability 0.`);
  const low = each.candidates.find(
    (one) => one.selectable && one.probability! < (monteCarlo?.floor ?? 0) - SUM_TOLERANCE,
  );
  if (low !== undefined)
    throw bad(
      `${low.id} has probability ${low.probability}, below the floor ${monteCarlo!.floor} that it states.`,
    );
}

/** A state has one error: the error after a step equals the error before its continuation. */
function checkContinuity(steps: readonly Step[], index: number, field: string): void {
  const parent = parentOf(steps, index);
  const left = parent < 0 ? undefined : steps[parent]!.after;
  const found = steps[index]!.before;
  if (left === undefined || found === undefined || left === found) return;
  throw refuse(
    "bad-choice",
    { field, parent, left, found },
    `${field}: begins with error ${found}, but step ${parent}, which it continues, ended with ${left}.`,
  );
}

/** Checks the column values. Called wherever columns are read or written. */
export function checkTokenColumns(item: TokenStream, columns: TokenColumns, field: string): void {
  const { mask } = columns;
  const { ones: samples } = scanMask(mask);
  if (samples < 0) {
    const index = mask.findIndex((value) => value > 1);
    throw refuse(
      "bad-mask",
      { field, index, value: mask[index] },
      `${field}: mask[${index}] is ${mask[index]}. A mask holds 0 and 1 only.`,
    );
  }
  if (samples !== item.samples) {
    throw refuse(
      "bad-mask",
      { field, expected: item.samples, actual: samples },
      `${field}: the mask marks ${samples} samples, the stream claims ${item.samples}.`,
    );
  }
  checkCoverage(item, mask, field);
  checkLogprobs(columns.logprobs, field);
  for (const name of ["logprobs", "rewards", "advantages"] as const) {
    const at = columns[name] === undefined ? -1 : firstNonFinite(columns[name]);
    if (at >= 0)
      throw refuse(
        "non-finite-number",
        { field: `${field}.${name}`, index: at },
        `${field}.${name}[${at}] is not finite. Drop the rollout or correct its numbers.`,
      );
  }
}

/** Samplers round: the logprob of a certain token may be slightly above 0, by at most this. */
export const LOGPROB_TOLERANCE = 1e-3;

function checkLogprobs(logprobs: Float32Array, field: string): void {
  // A loop instead of findIndex, which calls a function for every number.
  let at = 0;
  while (at < logprobs.length && !(logprobs[at]! > LOGPROB_TOLERANCE)) at++;
  if (at === logprobs.length) return;
  throw refuse(
    "bad-logprob",
    { field: `${field}.logprobs`, index: at, value: logprobs[at] },
    `${field}.logprobs[${at}] is ${logprobs[at]}, a probability above 1. Record natural logarithms of probabilities.`,
  );
}

/** Every sampled token lies in a segment, so every sample has a revision. */
export function checkCoverage(item: TokenStream, mask: Uint8Array, field: string): void {
  const inside = countInside(item.segments, mask);
  if (inside === item.samples) return;
  const outside = item.samples - inside;
  throw refuse(
    "bad-mask",
    { field, outside },
    `${field}: ${outside} sampled tokens lie in no segment, so no revision made them.`,
  );
}

function countInside(segments: TokenStream["segments"], mask: Uint8Array): number {
  const { edges } = scanMask(mask);
  if (edges !== undefined) return onesInside(segments, edges);
  let inside = 0;
  for (const part of segments) for (let i = part.start; i < part.end; i++) inside += mask[i] ?? 0;
  return inside;
}
