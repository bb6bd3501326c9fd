/** Why a policy scores its candidates as it does: the part of each feature for linear policies, mean and bonus for bandits.
 *  In: a model, a question. Out: numbers with the names a person knows them by. Hashed words are named by the words of
 *  the prompt that fall into their bucket. Does not choose: `decide()` does. */
import { log } from "../base/index.ts";
import { linearBeliefs, tallies } from "./bandit-policy.ts";
import type { PolicyModel } from "./checkpoint.ts";
import type { DecisionCandidate, DecisionContext } from "./decision.ts";
import { type FeatureLayout, PROMPT_FEATURES } from "./feature-spec.ts";
import { type FeatureReader, makeFeatureReader } from "./features.ts";
import { linearParts } from "./linear-policy.ts";
import { meanOutput, mlpOutputs } from "./mlp-policy.ts";
import { armIndex, firstSpecOf, tensorOf } from "./model-parts.ts";
import { mix, scanPrompt } from "./scan-prompt.ts";
import { openValueModel } from "./value/index.ts";

export interface FeaturePart {
  readonly feature: string;
  /** What it adds to the score: weight times value. */
  readonly part: number;
}

export interface CandidateScore {
  readonly id: string;
  /** False: the policy has never seen it. */
  readonly known: boolean;
  /** Undefined for a candidate it does not know, and for one that a bandit has not tried. */
  readonly score?: number;
  /** Of a bandit: the estimated reward, and what uncertainty adds to it (for Thompson sampling its spread). */
  readonly mean?: number;
  readonly bonus?: number;
  /** Of a bandit that counts: decisions behind the mean. */
  readonly tried?: number;
  /** Of a linear policy. They add up to the score, or to the mean of a bandit. */
  readonly parts: readonly FeaturePart[];
}

export function explainPolicy(
  model: PolicyModel,
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
): CandidateScore[] {
  switch (model.kind) {
    case "softmax-linear":
      return linearScores(model, context, candidates);
    case "ucb1":
    case "thompson-beta":
      return tallyScores(model, candidates);
    case "linucb":
    case "thompson-linear":
      return beliefScores(model, context, candidates);
    case "value":
      return valueScores(model, context, candidates);
    case "mlp-greedy":
    case "mlp-softmax":
      return outputScores(model, context, candidates);
    default:
      return model.kind satisfies never;
  }
}

/** Values or logits; a network has no parts that add up. */
function outputScores(
  model: PolicyModel,
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
): CandidateScore[] {
  const outputs = mlpOutputs(model)(context);
  const known = armIndex(model.arms);
  return candidates.map(({ id }) => {
    const arm = known.get(id);
    return arm === undefined
      ? { id, known: false, parts: [] }
      : { id, known: true, score: meanOutput(outputs, arm), parts: [] };
  });
}

function linearScores(
  model: PolicyModel,
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
): CandidateScore[] {
  const { spec, reader, weights, shared, known, sharpness } = linearParts(model);
  const features = namedFeatures(reader, context);
  return candidates.map((candidate) => {
    const arm = known.get(candidate.id);
    if (arm === undefined) return unknown(candidate.id);
    const own = spec.candidate.length === 0 ? [] : [...reader.candidate(candidate)];
    const parts = [
      ...features.map(({ name, index, value }) => ({
        feature: name,
        part: sharpness * weights[arm * reader.size + index]! * value,
      })),
      ...own.map((value, j) => ({
        feature: `${spec.candidate[j]} of the candidate`,
        part: sharpness * shared[j]! * value,
      })),
    ];
    return { id: candidate.id, known: true, score: sum(parts), parts: byWeight(parts) };
  });
}

/** The parts of a value policy by learner: their features are too many to name one by one. */
function valueScores(
  model: PolicyModel,
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
): CandidateScore[] {
  const known = armIndex(model.arms);
  const { linear, logistic, neighbours, cost } = openValueModel(model).parts(context);
  return candidates.map(({ id }) => {
    const arm = known.get(id);
    if (arm === undefined) return unknown(id);
    const parts = [
      { feature: "linear model", part: linear[arm]! },
      { feature: "logistic model", part: logistic[arm]! },
      { feature: "similar questions", part: neighbours[arm]! },
      { feature: "cost", part: 0 - cost[arm]! },
    ];
    return { id, known: true, score: sum(parts), parts: byWeight(parts) };
  });
}

function beliefScores(
  model: PolicyModel,
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
): CandidateScore[] {
  const reader = makeFeatureReader(firstSpecOf(model));
  const weights = tensorOf(model, "weights", [model.arms.length, reader.size]);
  const known = armIndex(model.arms);
  const beliefs = linearBeliefs(model)(context);
  const width = model.kind === "linucb" ? (model.settings.alpha ?? 1) : (model.settings.spread ?? 1);
  const features = namedFeatures(reader, context);
  return candidates.map((candidate) => {
    const arm = known.get(candidate.id);
    const mean = beliefs.mean(candidate);
    const bonus = width * Math.sqrt(beliefs.variance(candidate));
    if (arm === undefined) return { ...unknown(candidate.id), score: mean + bonus, mean, bonus };
    const parts = features.map(({ name, index, value }) => ({
      feature: name,
      part: weights[arm * reader.size + index]! * value,
    }));
    return { id: candidate.id, known: true, score: mean + bonus, mean, bonus, parts: byWeight(parts) };
  });
}

function tallyScores(model: PolicyModel, candidates: readonly DecisionCandidate[]): CandidateScore[] {
  const { counts, sums, known } = tallies(model);
  const total = counts.reduce((all, each) => all + each, 0);
  return candidates.map(({ id }) => {
    const arm = known.get(id);
    const tried = arm === undefined ? 0 : counts[arm]!;
    if (tried === 0) return { ...unknown(id), known: arm !== undefined, tried };
    const mean = sums[arm!]! / tried;
    const bonus =
      model.kind === "ucb1"
        ? (model.settings.exploration ?? 1) * Math.sqrt((2 * log(Math.max(total, 1))) / tried)
        : betaSpread(sums[arm!]!, tried);
    return { id, known: true, score: mean + bonus, mean, bonus, tried, parts: [] };
  });
}

/** The standard deviation of Beta(1 + won, 1 + lost). */
function betaSpread(won: number, tried: number): number {
  const [a, b] = [1 + won, 1 + tried - won];
  return Math.sqrt((a * b) / ((a + b) * (a + b) * (a + b + 1)));
}

interface NamedFeature {
  readonly name: string;
  readonly index: number;
  readonly value: number;
}

function namedFeatures(reader: FeatureReader, context: DecisionContext): NamedFeature[] {
  const { indices, values, count } = reader.context(context);
  const read = Array.from({ length: count }, (_, e) => ({ index: indices[e]!, value: values[e]! }));
  const words = wordNames(reader, context.prompt);
  return read.map(({ index, value }) => ({ name: featureName(reader, index, words), index, value }));
}

function featureName(layout: FeatureLayout, index: number, words: ReadonlyMap<number, string>): string {
  const { spec, fieldAt, denseSize } = layout;
  if (index < PROMPT_FEATURES.length) return `${PROMPT_FEATURES[index]} of the prompt`;
  if (index >= denseSize) return words.get(index - denseSize) ?? "a word past the limit";
  const field = fieldAt.findLastIndex((at) => at <= index);
  const { name, kind } = spec.fields[field]!;
  return kind === "number" && index === fieldAt[field]! + 1 ? `field ${name} is given` : `field ${name}`;
}

/** The words and pairs of the prompt by bucket, hashed as the reader hashes them. */
function wordNames({ spec }: FeatureLayout, prompt: string): Map<number, string> {
  const names = new Map<number, string>();
  const mask = spec.wordBuckets - 1;
  const add = (hash: number, name: string) => {
    const bucket = mix(hash) & mask;
    const before = names.get(bucket);
    if (before === undefined) names.set(bucket, name);
    else if (!before.includes(name)) names.set(bucket, `${before} or ${name}`);
  };
  let last: { word: string; hash: number } | undefined;
  for (const word of splitWords(prompt)) {
    const hash = hashWord(word);
    add(hash, `“${word}”`);
    if (last !== undefined) add(Math.imul(last.hash, 31) ^ hash ^ 0x5bd1e995, `“${last.word} ${word}”`);
    last = { word, hash };
  }
  return names;
}

function hashWord(word: string): number {
  const hashes = new Int32Array(2);
  scanPrompt(word, hashes);
  return hashes[0]!;
}

/** As `scanPrompt` parts them: runs of letters and digits, each Han, kana or hangul character alone. */
function splitWords(prompt: string): string[] {
  return (
    prompt.match(/[\u2e80-\u9fff\uac00-\ud7af]|[A-Za-z0-9\u0080-\u2e7f\ua000-\uabff\ud7b0-\uffff]+/g) ?? []
  );
}

function unknown(id: string): CandidateScore {
  return { id, known: false, parts: [] };
}

function byWeight(parts: readonly FeaturePart[]): FeaturePart[] {
  return parts.filter(({ part }) => part !== 0).sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
}

function sum(parts: readonly FeaturePart[]): number {
  return parts.reduce((total, { part }) => total + part, 0);
}
