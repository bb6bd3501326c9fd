/** Chooses λ for Switch-DR and DRos by SLOPE (Su, Srinath and Krishnamurthy, 2020), after Lepski:
 *  candidates in order of growing bias and shrinking width; the last whose interval meets all earlier ones wins. */

import { normalQuantile } from "../math/index.ts";
import { type Estimate, standardError } from "./estimate.ts";

interface Tuned {
  readonly lambda: number;
  readonly estimate: Estimate;
}

/** `lambdas` from the least biased (the largest λ) to the most biased. */
export function slope(lambdas: readonly number[], at: (lambda: number) => Estimate, level = 0.95): Tuned {
  // Bonferroni: all candidates' intervals hold at once.
  const quantile = normalQuantile(1 - (1 - level) / (2 * lambdas.length));
  let low = Number.NEGATIVE_INFINITY;
  let high = Number.POSITIVE_INFINITY;
  let best: Tuned | undefined;
  for (const lambda of lambdas) {
    const estimate = at(lambda);
    const half = 2 * quantile * standardError(estimate);
    if (estimate.value - half > high || estimate.value + half < low) break;
    low = Math.max(low, estimate.value - half);
    high = Math.min(high, estimate.value + half);
    best = { lambda, estimate };
  }
  return best!;
}

/** Weights at the tail shares 0, 1/1024, 1/512, … 1/2, 1 of the log, largest first: the tail is where λ matters. */
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
