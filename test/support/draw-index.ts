import type { Rng } from "../../src/base/index.ts";

/** An index drawn with the probabilities `weights[from … from+count)`, which need not sum to 1. */
export function drawIndex(weights: Float64Array, rng: Rng, from = 0, count = weights.length - from): number {
  let total = 0;
  for (let i = from; i < from + count; i++) total += weights[i]!;
  let left = rng.float() * total;
  let last = 0;
  for (let i = 0; i < count; i++) {
    const weight = weights[from + i]!;
    if (weight <= 0) continue;
    last = i;
    left -= weight;
    if (left < 0) return i;
  }
  // Rounding can leave a little probability mass. It belongs to the last possible index.
  return last;
}
