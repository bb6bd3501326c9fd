/** Chooses λ for Switch-DR and DRos: the λ with the least estimated mean squared error.
 *  The variance is that of the estimate. The bias is the paired difference to the least biased candidate, DR itself,
 *  plus one standard error of that difference: a bias that the log cannot exclude counts. */

import { difference, type Estimate, standardError } from "./estimate.ts";

interface Tuned {
  readonly lambda: number;
  readonly estimate: Estimate;
}

/** `lambdas`: from the least biased (the largest λ) to the most biased. */
export function tuneLambda(lambdas: readonly number[], at: (lambda: number) => Estimate): Tuned {
  const tried = lambdas.map((lambda) => ({ lambda, estimate: at(lambda) }));
  const whole = tried[0]!.estimate;
  let best: { tuned: Tuned; error: number } | undefined;
  for (const tuned of tried) {
    const gap = difference(tuned.estimate, whole);
    const bias = Math.abs(gap.value) + standardError(gap);
    const error = standardError(tuned.estimate) ** 2 + (tuned === tried[0] ? 0 : bias * bias);
    if (best === undefined || error < best.error) best = { tuned, error };
  }
  return best!.tuned;
}

/** Weights at the tail shares 0, 1/1024, 1/512, … 1/2, 1 of the log, largest first: λ matters in the tail. */
export function lambdaGrid(weights: Float64Array): number[] {
  const descending = weights
    .filter((w) => w > 0)
    .sort()
    .reverse();
  if (descending.length === 0) return [Number.POSITIVE_INFINITY];
  const grid = [descending[0]!];
  for (let parts = 1024; parts >= 1; parts /= 2) {
    const weight = descending[Math.ceil(descending.length / parts) - 1]!;
    if (weight < grid.at(-1)!) grid.push(weight);
  }
  return grid;
}
