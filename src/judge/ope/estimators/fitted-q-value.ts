/** Fitted Q evaluation for chains:  V = mean over units and their episodes of v̂(s₀),  v̂(s) = Σ_a π_e(a|s)·q̂(s, a).
 *  No weights, so no variance from weights. Its bias is the error of q̂, which intervals over episodes do not show. */
import { episodesOf, type LoggedDecisions } from "../log/index.ts";
import type { RewardPredictions } from "../models/index.ts";
import { type Estimate, meanOverUnits } from "./estimate.ts";

export function fittedQValue(log: LoggedDecisions, q: RewardPredictions): Estimate {
  const { count, rows, start, units } = episodesOf(log);
  const top = Float64Array.from({ length: count }, (_, e) => q.expected[rows[start[e]!]!]!);
  return meanOverUnits("FQE", top, { units });
}
