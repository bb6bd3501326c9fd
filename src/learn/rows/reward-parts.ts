/** The parts of a reward that learners and judge measure: the quality, and the burdens cost and latency.
 *  In: a reward and its terms. Out: numbers. One definition, so that a policy is judged by what it has learned. */
import type { MeasuredTerm, RewardTerms } from "./decision-row.ts";

/** Smaller differences are rounding errors: sums of terms are formed in more than one order. */
const ROUNDING = 1e-9;

/** The reward without its terms cost and latency: the sum of the other terms and the part that no term explains (a clip,
 *  a bonus). */
export function qualityIn(reward: number, terms: RewardTerms): number {
  let [burdens, others] = [0, 0];
  for (const [name, { value, weight }] of Object.entries(terms)) {
    if (name === "cost" || name === "latency") burdens += value * weight;
    else others += value * weight;
  }
  const unexplained = reward - burdens - others;
  return Math.abs(unexplained) < ROUNDING ? others : others + unexplained;
}

/** A cost or a latency; lower is better. The sign of the weight gives the meaning of the value: "−1 at a dollar" with
 *  weight 1 and "a dollar" with weight −1 are the same cost. A weight of 0 leaves the sign open; a burden is positive. */
export function burdenOf({ value, weight }: MeasuredTerm): number {
  if (weight === 0) return Math.abs(value);
  return weight > 0 ? 0 - value : value;
}
