/** Why a policy scores its candidates as it does: the part of each feature for linear policies, mean and bonus for bandits.
 *  In: a model, a question. Out: numbers with the names a person knows them by. Parts say what sets this question apart from
 *  an average one, where the checkpoint knows that: what is the same in every request explains none. Does not choose:
 *  `decide()` does. */
import { exp, log } from "../../base/index.ts";
import { linearBeliefs, tallies } from "../bandit-policy.ts";
import type { PolicyModel } from "../checkpoint.ts";
import type { DecisionCandidate, DecisionContext } from "../decision.ts";
import { makeFeatureReader, type SparseVector } from "../features.ts";
import { linearParts } from "../linear-policy.ts";
import { meanOutput, mlpOutputs } from "../mlp-policy.ts";
import { armIndex, firstSpecOf, tensorOf } from "../model-parts.ts";
import { openValueModel } from "../value/index.ts";
import { firstNames, type NameFeature, valueNames } from "./feature-names.ts";
import { usualRequest } from "./usual-request.ts";

export interface FeaturePart {
  readonly feature: string;
  /** What it adds to the score of an average request: weight times the difference in value. */
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
  /** Its score in an average request, or the mean of a bandit there. Absent: the checkpoint does not know one, and parts count
   *  from 0. */
  readonly usual?: number;
  /** Of a linear policy. With `usual` they add up to the score, or to the mean of a bandit. */
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
  const means = usualRequest(model, reader.size);
  const departures = departuresOf(reader.context(context), { means, nameOf: firstNames(reader, context) });
  return candidates.map((candidate) => {
    const arm = known.get(candidate.id);
    if (arm === undefined) return unknown(candidate.id);
    const own = spec.candidate.length === 0 ? [] : [...reader.candidate(candidate)];
    const facts = own.map((value, j) => ({
      feature: `${spec.candidate[j]} of the candidate`,
      part: sharpness * shared[j]! * value,
    }));
    const weightOf = (index: number) => sharpness * weights[arm * reader.size + index]!;
    const parts = partsOf(departures, weightOf);
    const { usual } = usualOf(means, weightOf);
    // The facts of a candidate are the same in every request.
    if (usual === undefined) {
      const all = [...parts, ...facts];
      return { id: candidate.id, known: true, score: sum(all), parts: byWeight(all) };
    }
    const base = usual + sum(facts);
    return { id: candidate.id, known: true, score: base + sum(parts), usual: base, parts: byWeight(parts) };
  });
}

/** Without an average request the parts are the learners. */
function valueScores(
  model: PolicyModel,
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
): CandidateScore[] {
  const known = armIndex(model.arms);
  const { reader, parts: partsFor } = openValueModel(model);
  const { linear, logistic, neighbours, cost } = partsFor(context);
  const means = usualRequest(model, reader.size);
  const relative = means === undefined ? undefined : valueDepartures(model, context, means);
  return candidates.map(({ id }) => {
    const arm = known.get(id);
    if (arm === undefined) return unknown(id);
    const all = {
      linear: linear[arm]!,
      logistic: logistic[arm]!,
      neighbours: neighbours[arm]!,
      cost: cost[arm]!,
    };
    const score = all.linear + all.logistic + all.neighbours - all.cost;
    if (relative !== undefined) return { id, known: true, score, ...relative(arm, all) };
    const parts = [
      { feature: "linear model", part: all.linear },
      { feature: "logistic model", part: all.logistic },
      { feature: "similar questions", part: all.neighbours },
      { feature: "cost", part: 0 - all.cost },
    ];
    return { id, known: true, score, parts: byWeight(parts) };
  });
}

interface ArmParts {
  readonly linear: number;
  readonly logistic: number;
  readonly neighbours: number;
  readonly cost: number;
}

/** The parts of an arm by feature. The logistic part is not linear: its departure is shared among the features in proportion to
 *  what they add to its logit. Similar questions depart from the mean of all, costs from those of an average request. */
function valueDepartures(model: PolicyModel, context: DecisionContext, means: Float64Array) {
  const { reader } = openValueModel(model);
  const arms = model.arms.length;
  const nameOf = valueNames(reader.spec, model.tensors.columns?.data as Uint32Array, context);
  const departures = departuresOf(reader.context(context), { means, nameOf });
  const part = (name: string) => {
    if (model.tensors[`${name}_weights`] === undefined) return undefined;
    const weights = tensorOf(model, `${name}_weights`, [reader.size, arms]);
    return { weights, bias: tensorOf(model, `${name}_bias`, [arms]) };
  };
  const [linear, logistic, cost] = [part("linear"), part("logistic"), part("cost")];
  const { low = 0, high = 1, logistic_share = 0, neighbour_share = 0, cost_weight = 0 } = model.settings;
  const near = neighbour_share === 0 ? undefined : tensorOf(model, "means", [arms]);
  const squashed = (logit: number) => logistic_share * (low + (high - low) / (1 + exp(-logit)));
  return (arm: number, now: ArmParts): { usual: number; parts: FeaturePart[] } => {
    const weightIn = (of: typeof linear) => (index: number) => of?.weights[index * arms + arm] ?? 0;
    const usualIn = (of: typeof linear) =>
      of === undefined ? 0 : of.bias[arm]! + usualOf(means, weightIn(of)).usual!;
    const logit = { usual: usualIn(logistic), moved: sum(partsOf(departures, weightIn(logistic))) };
    const usual = {
      linear: usualIn(linear),
      logistic: logistic === undefined ? 0 : squashed(logit.usual),
      neighbours: neighbour_share * (near?.[arm] ?? 0),
      cost: cost_weight * usualIn(cost),
    };
    const slope = logit.moved === 0 ? 0 : (now.logistic - usual.logistic) / logit.moved;
    const features = partsOf(
      departures,
      (index) => weightIn(linear)(index) + slope * weightIn(logistic)(index),
    );
    const others = [
      { feature: "similar questions", part: now.neighbours - usual.neighbours },
      { feature: "predicted cost", part: usual.cost - now.cost },
    ];
    return {
      usual: usual.linear + usual.logistic + usual.neighbours - usual.cost,
      parts: byWeight([...features, ...others]),
    };
  };
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
  const means = usualRequest(model, reader.size);
  const departures = departuresOf(reader.context(context), { means, nameOf: firstNames(reader, context) });
  return candidates.map((candidate) => {
    const arm = known.get(candidate.id);
    const mean = beliefs.mean(candidate);
    const bonus = width * Math.sqrt(beliefs.variance(candidate));
    if (arm === undefined) return { ...unknown(candidate.id), score: mean + bonus, mean, bonus };
    const weightOf = (index: number) => weights[arm * reader.size + index]!;
    return {
      ...{ id: candidate.id, known: true, score: mean + bonus, mean, bonus, ...usualOf(means, weightOf) },
      parts: byWeight(partsOf(departures, weightOf)),
    };
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

/** How far a place of the vector is from that of an average request; from 0 where that is not known. */
interface Departure {
  readonly name: string;
  readonly index: number;
  readonly value: number;
}

function departuresOf(
  { indices, values, count }: SparseVector,
  { means, nameOf }: { means: Float64Array | undefined; nameOf: NameFeature },
): Departure[] {
  const places = new Map<number, number>();
  means?.forEach((mean, index) => {
    if (mean !== 0) places.set(index, -mean);
  });
  for (let e = 0; e < count; e++) places.set(indices[e]!, (places.get(indices[e]!) ?? 0) + values[e]!);
  return [...places].map(([index, value]) => ({ name: nameOf(index), index, value }));
}

/** One part a name: places that share one add up. */
function partsOf(departures: readonly Departure[], weightOf: (index: number) => number): FeaturePart[] {
  const parts = new Map<string, number>();
  for (const { name, index, value } of departures)
    parts.set(name, (parts.get(name) ?? 0) + weightOf(index) * value);
  return [...parts].map(([feature, part]) => ({ feature, part }));
}

/** The score of an average request; absent where none is known. */
function usualOf(means: Float64Array | undefined, weightOf: (index: number) => number): { usual?: number } {
  if (means === undefined) return {};
  let usual = 0;
  means.forEach((mean, index) => {
    usual += weightOf(index) * mean;
  });
  return { usual };
}

function unknown(id: string): CandidateScore {
  return { id, known: false, parts: [] };
}

/** What is nearer to 0 is rounding: a constant less its mean. */
const ROUNDING = 1e-12;

function byWeight(parts: readonly FeaturePart[]): FeaturePart[] {
  return parts
    .filter(({ part }) => Math.abs(part) > ROUNDING)
    .sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
}

function sum(parts: readonly FeaturePart[]): number {
  return parts.reduce((total, { part }) => total + part, 0);
}
