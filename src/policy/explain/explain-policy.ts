/** Explains a policy's scores: the part of each feature for linear policies, mean and bonus for bandits.
 *  In: a model, a question. Out: numbers with readable feature names. If the checkpoint knows an average request, parts
 *  measure the difference from it: a feature with the same value in every request has part 0.
 *  Does not choose: `decide()` does. */
import { log } from "../../base/index.ts";
import { LinearBeliefs, tallies } from "../bandit-policy.ts";
import type { PolicyModel } from "../checkpoint.ts";
import type { DecisionCandidate, DecisionContext } from "../decision.ts";
import { layOut } from "../feature-spec.ts";
import { makeFeatureReader } from "../features.ts";
import { linearParts } from "../linear-policy.ts";
import { meanOutput, mlpOutputs } from "../mlp-policy.ts";
import { armIndex, firstSpecOf, tensorOf } from "../model-parts.ts";
import { valueScores } from "./explain-value.ts";
import { firstNames } from "./feature-names.ts";
import {
  byWeight,
  type CandidateScore,
  departuresOf,
  partsOf,
  sum,
  unknown,
  usualOf,
} from "./score-parts.ts";
import { usualRequest } from "./usual-request.ts";

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

/** From this share of used buckets on, at least one used bucket in ten holds several words. */
const CROWDED = 0.2;

/** Below this number of buckets a few thousand words share buckets. Used if the number of used buckets is unknown. */
const FEW_BUCKETS = 4096;

/** The number of hash buckets, if there are too few to attribute a part to one word; else undefined. */
export function crowdedBuckets(model: PolicyModel): number | undefined {
  if (model.spec.schema !== "rollbook.feature-spec.v1" || model.spec.wordBuckets === 0) return undefined;
  const buckets = model.spec.wordBuckets;
  const { denseSize, size } = layOut(model.spec);
  const used = usualRequest(model, size)
    ?.subarray(denseSize)
    .reduce((count, mean) => count + (mean === 0 ? 0 : 1), 0);
  const isCrowded = used === undefined ? buckets < FEW_BUCKETS : used > CROWDED * buckets;
  return isCrowded ? buckets : undefined;
}

/** Values or logits of a network. A network's score has no additive parts. */
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
  const nameOf = firstNames(reader, { context, isCrowded: crowdedBuckets(model) !== undefined });
  const departures = departuresOf(reader.context(context), { means, nameOf });
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

function beliefScores(
  model: PolicyModel,
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
): CandidateScore[] {
  const reader = makeFeatureReader(firstSpecOf(model));
  const weights = tensorOf(model, "weights", [model.arms.length, reader.size]);
  const known = armIndex(model.arms);
  const beliefs = new LinearBeliefs(model);
  beliefs.read(context);
  const width = model.kind === "linucb" ? (model.settings.alpha ?? 1) : (model.settings.spread ?? 1);
  const means = usualRequest(model, reader.size);
  const nameOf = firstNames(reader, { context, isCrowded: crowdedBuckets(model) !== undefined });
  const departures = departuresOf(reader.context(context), { means, nameOf });
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
