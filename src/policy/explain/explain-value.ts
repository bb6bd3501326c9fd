/** Explains a value policy's scores as parts, one for each feature. The contribution of similar questions is attributed
 *  to the words that cause it. In: a model, a question. Out: scores with parts. */
import { exp } from "../../base/index.ts";
import type { PolicyModel } from "../checkpoint.ts";
import type { DecisionCandidate, DecisionContext } from "../decision.ts";
import { armIndex, tensorOf } from "../model-parts.ts";
import { openValueModel, type ValueModel } from "../value/index.ts";
import { isWord, type NameFeature, valueNames } from "./feature-names.ts";
import {
  addedUp,
  byWeight,
  type CandidateScore,
  departuresOf,
  type FeaturePart,
  partsOf,
  sum,
  unknown,
  usualOf,
} from "./score-parts.ts";
import { usualRequest } from "./usual-request.ts";

/** Scores with parts by feature. Without an average request, the parts are the learners. */
export function valueScores(
  model: PolicyModel,
  context: DecisionContext,
  candidates: readonly DecisionCandidate[],
): CandidateScore[] {
  const known = armIndex(model.arms);
  const opened = openValueModel(model);
  const { linear, logistic, neighbours, cost } = opened.parts(context);
  const means = usualRequest(model, opened.reader.size);
  const relative = means === undefined ? undefined : valueDepartures(model, { context, means, opened });
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

/** The parts of an arm by feature. The logistic part is not linear: its departure is shared among the features in
 *  proportion to their contributions to its logit. Similar questions depart from the mean of all questions; costs
 *  depart from those of an average request. A word's part includes its effect on the set of similar questions. */
function valueDepartures(
  model: PolicyModel,
  { context, means, opened }: { context: DecisionContext; means: Float64Array; opened: ValueModel },
) {
  const { reader } = opened;
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
  const wordsNear = near === undefined ? () => [] : wordsOfNeighbours(opened, context, nameOf);
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
    const moved = now.neighbours - usual.neighbours;
    const words = withinWhole(wordsNear(arm), moved);
    const others = [
      { feature: "similar questions", part: moved - sum(words) },
      { feature: "predicted cost", part: usual.cost - now.cost },
    ];
    return {
      usual: usual.linear + usual.logistic + usual.neighbours - usual.cost,
      parts: byWeight(addedUp([...features, ...words, ...others])),
    };
  };
}

/** Number of words tried for their effect on the neighbours. Each word needs its own search. */
const MOST_WORDS = 32;

/** The decrease of the neighbours' value for an arm without each word of the question.
 *  Tries the words with most weight. */
function wordsOfNeighbours(
  { reader, neighbours }: ValueModel,
  context: DecisionContext,
  nameOf: NameFeature,
): (arm: number) => FeaturePart[] {
  const { indices, values, count } = reader.context(context);
  const full = { indices: indices.slice(0, count), values: values.slice(0, count), count };
  const names = Array.from(full.indices, (index) => nameOf(index));
  const weights = new Map<string, number>();
  names.forEach((each, e) => {
    for (const name of each)
      if (isWord(name)) weights.set(name, (weights.get(name) ?? 0) + full.values[e]! / each.length);
  });
  const tried = [...weights].sort(([, a], [, b]) => b - a).slice(0, MOST_WORDS);
  const all = neighbours(full);
  const lost = tried.map(([word]) => {
    const without = full.values.map((value, e) => {
      const each = names[e]!;
      return (value * each.filter((name) => name !== word).length) / each.length;
    });
    const left = neighbours({ ...full, values: without });
    return { word, parts: all.map((value, arm) => value - left[arm]!) };
  });
  return (arm) => lost.map(({ word, parts }) => ({ feature: word, part: parts[arm]! }));
}

/** Scales the words' parts down if their sum exceeds the whole.
 *  A sum of the opposite sign explains nothing: no parts. */
function withinWhole(parts: readonly FeaturePart[], whole: number): FeaturePart[] {
  const together = sum(parts);
  if (together * whole <= 0) return [];
  const share = Math.min(1, whole / together);
  return parts.map(({ feature, part }) => ({ feature, part: share * part }));
}
