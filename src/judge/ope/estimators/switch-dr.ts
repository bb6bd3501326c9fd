/** Switch-DR (Wang, Agarwal and Dudík, 2017): corrects the model only where w ≤ λ.
 *  Bounds the weights; its bias is the model's error where w > λ. λ = ∞ is DR, λ = 0 is DM. */

import type { LoggedDecisions } from "../log/index.ts";
import type { RewardPredictions } from "../models/index.ts";
import { correctedBy } from "./doubly-robust.ts";
import type { Estimate } from "./estimate.ts";

export function switchDr(log: LoggedDecisions, q: RewardPredictions, lambda: number): Estimate {
  return correctedBy("Switch-DR", { log, q, weight: (w) => (w <= lambda ? w : 0) });
}
