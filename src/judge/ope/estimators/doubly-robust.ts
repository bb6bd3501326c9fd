/** Doubly robust (Dudík, Langford and Li, 2011):  V = mean(Σ_a π_e·q̂ + w·(r − q̂(x, a))).
 *  Consistent if either the propensities or the model are right; with logged propensities always unbiased. */

import { type LoggedDecisions, outcomeWidth, unitsOf, weightsOf } from "../log/index.ts";
import type { RewardPredictions } from "../models/index.ts";
import { type Estimate, meanOverUnits } from "./estimate.ts";

export function doublyRobust(log: LoggedDecisions, q: RewardPredictions): Estimate {
  return correctedBy("DR", { log, q, weight: (w) => w });
}

/** The form that DR and its variants share: the model's value plus its residual under `weight(w)`. */
export function correctedBy(
  name: string,
  { log, q, weight }: { log: LoggedDecisions; q: RewardPredictions; weight: (w: number) => number },
): Estimate {
  const weights = weightsOf(log);
  for (let i = 0; i < weights.length; i++) weights[i] = weight(weights[i]!);
  const terms = weights.map((w, i) => q.expected[i]! + w * (log.reward[i]! - q.chosen[i]!));
  const units = unitsOf(log);
  if (q.isExact === true) return meanOverUnits(name, terms, { units });
  return meanOverUnits(name, terms, { units, exposure: { weights, units, width: outcomeWidth(log) } });
}
