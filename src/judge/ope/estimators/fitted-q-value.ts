/** Fitted Q evaluation for chains:  V = mean over episodes of v̂(s₀),  v̂(s) = Σ_a π_e(a|s)·q̂(s, a).
 *  No weights, so no variance from them; as good as q̂, whose error no interval over episodes shows. */
import { episodesOf, type LoggedDecisions } from "../log/index.ts";
import type { RewardPredictions } from "../models/index.ts";
import { type Estimate, estimateOf } from "./estimate.ts";

export function fittedQValue(log: LoggedDecisions, q: RewardPredictions): Estimate {
  const { count, rows, start } = episodesOf(log);
  const top = Float64Array.from({ length: count }, (_, e) => q.expected[rows[start[e]!]!]!);
  return estimateOf("FQE", [{ top, bottom: undefined }]);
}
