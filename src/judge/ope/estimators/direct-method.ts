/** Direct method:  V = mean(Σ_a π_e(a|x)·q̂(x, a)).  No weights, so low variance; its bias is the model's error. */

import { type LoggedDecisions, unitsOf } from "../log/index.ts";
import type { RewardPredictions } from "../models/index.ts";
import { type Estimate, meanOverUnits } from "./estimate.ts";

export function directMethod(log: LoggedDecisions, q: RewardPredictions): Estimate {
  return meanOverUnits("DM", q.direct ?? q.expected, { units: unitsOf(log) });
}
