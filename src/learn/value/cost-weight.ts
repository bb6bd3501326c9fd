/** Quality against cost: the choices under a cost weight, and the weight that keeps a budget.
 *  In: held-out predictions of quality and cost, the known outcomes of both. Out: a sweep over weights, or the least
 *  weight whose choices cost no more than the budget on average. A larger weight never costs more. */
import { RollbookError } from "../../base/index.ts";
import { bestArm, type Folds, isOffered } from "./cross-validate.ts";
import type { ValueData } from "./learners.ts";

interface WeighedPredictions {
  readonly folds: Folds;
  /** The same rows and outcomes, measured as quality and as cost. */
  readonly quality: { readonly data: ValueData; readonly predictions: Float64Array };
  readonly cost: { readonly data: ValueData; readonly predictions: Float64Array };
}

export interface SweepPoint {
  readonly costWeight: number;
  readonly quality: number;
  readonly cost: number;
}

/** Steps of the bisection: they give nine digits of the weight. */
const STEPS = 60;
const SWEEP_POINTS = 11;

/** From quality alone to the cheapest choices, evenly over the weights at which choices change. */
export function sweepWeights(weighed: WeighedPredictions): SweepPoint[] {
  const weights = switchingWeights(weighed);
  const at = (share: number) =>
    weights[Math.min(weights.length - 1, Math.floor(share * weights.length))] ?? 0;
  const chosen = Array.from({ length: SWEEP_POINTS }, (_, i) =>
    i === 0 ? 0 : at(i / (SWEEP_POINTS - 1)) * 1.000001,
  );
  return [...new Set(chosen)].map((costWeight) => pointAt(weighed, costWeight));
}

export function pointAt(weighed: WeighedPredictions, costWeight: number): SweepPoint {
  const choices = choicesAt(weighed, costWeight);
  return {
    costWeight,
    quality: meanOf(weighed.folds, weighed.quality, choices),
    cost: meanOf(weighed.folds, weighed.cost, choices),
  };
}

export function weightForBudget(weighed: WeighedPredictions, meanCost: number): number {
  if (pointAt(weighed, 0).cost <= meanCost) return 0;
  const weights = switchingWeights(weighed);
  let high = 2 * (weights.at(-1) ?? 1) + 1;
  const cheapest = pointAt(weighed, high).cost;
  if (cheapest > meanCost)
    throw new RollbookError(
      "bad-options",
      { meanCost, cheapest },
      `a mean cost of ${meanCost} cannot be kept: the cheapest choices cost ${cheapest.toPrecision(4)} on average. Allow more, or add a cheaper candidate.`,
    );
  let low = 0;
  for (let step = 0; step < STEPS && high - low > 1e-9 * high; step++) {
    const middle = (low + high) / 2;
    if (pointAt(weighed, middle).cost <= meanCost) high = middle;
    else low = middle;
  }
  return high;
}

function choicesAt({ folds, quality, cost }: WeighedPredictions, weight: number): Int32Array {
  const { arms } = quality.data;
  const score = (at: number) => quality.predictions[at]! - weight * cost.predictions[at]!;
  return Int32Array.from(folds.rows, (r, i) => bestArm(quality.data, r, (a) => score(i * arms + a)));
}

/** The mean measure of the choices: exact with full information, else self-normalised by the logged probabilities. */
function meanOf(folds: Folds, { data }: { data: ValueData }, choices: Int32Array): number {
  const { start, arm, target, weight } = data.outcomes;
  let [top, bottom] = [0, 0];
  folds.rows.forEach((r, i) => {
    for (let t = start[r]!; t < start[r + 1]!; t++) {
      if (arm[t] !== choices[i]) continue;
      top += weight[t]! * target[t]!;
      bottom += weight[t]!;
    }
  });
  return bottom === 0 ? Number.NaN : top / bottom;
}

/** For every row, the weights at which a cheaper candidate replaces its best candidate; ascending. */
function switchingWeights({ folds, quality, cost }: WeighedPredictions): number[] {
  const { arms } = quality.data;
  const found: number[] = [];
  folds.rows.forEach((r, i) => {
    const [q, c] = [quality.predictions, cost.predictions].map((each) =>
      each.subarray(i * arms, (i + 1) * arms),
    ) as [Float64Array, Float64Array];
    let at = bestArm(quality.data, r, (a) => q[a]!);
    for (;;) {
      let [next, least] = [-1, Number.POSITIVE_INFINITY];
      for (let a = 0; a < arms; a++) {
        if (!isOffered(quality.data, r, a) || !(c[a]! < c[at]!)) continue;
        const weight = (q[at]! - q[a]!) / (c[at]! - c[a]!);
        if (weight < least) [next, least] = [a, weight];
      }
      if (next < 0) return;
      found.push(Math.max(0, least));
      at = next;
    }
  });
  return found.sort((a, b) => a - b);
}
