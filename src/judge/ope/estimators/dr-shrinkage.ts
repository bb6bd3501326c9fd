/** DR with optimistic shrinkage (Su et al., 2020):  ŵ = λ·w / (w² + λ).
 *  Large weights are reduced smoothly; ŵ ≤ √λ/2. λ = ∞ is DR, λ = 0 is DM. */

import type { LoggedDecisions } from "../log/index.ts";
import type { RewardPredictions } from "../models/index.ts";
import { correctedBy } from "./doubly-robust.ts";
import type { Estimate } from "./estimate.ts";

export function drShrinkage(log: LoggedDecisions, q: RewardPredictions, lambda: number): Estimate {
  const shrink = (w: number) =>
    lambda === Number.POSITIVE_INFINITY ? w : w === 0 ? 0 : (lambda * w) / (w * w + lambda);
  return correctedBy("DRos", { log, q, weight: shrink });
}
