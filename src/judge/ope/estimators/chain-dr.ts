/** Doubly robust for chains (Jiang and Li, 2016):
 *  V = mean over units and their episodes of Σ_t γᵗ·(ρ_{t−1}·v̂(s_t) + ρ_t·(r_t − q̂(s_t, a_t))),
 *  v̂(s) = Σ_a π_e(a|s)·q̂(s, a).
 *  Unbiased with logged propensities for any q̂; a better q̂ gives a smaller variance. Here q̂ predicts the discounted
 *  return from a step on (see fitted-q.ts). A bandit's q̂ predicts the reward. */
import { discounts, episodesOf, type LoggedDecisions, runningWeights } from "../log/index.ts";
import type { RewardPredictions } from "../models/index.ts";
import { chainExposure } from "./chain-exposure.ts";
import { type Estimate, meanOverUnits } from "./estimate.ts";

export const CHAIN_DR = "chain DR";

export function chainDr(log: LoggedDecisions, q: RewardPredictions): Estimate {
  const episodes = episodesOf(log);
  const running = runningWeights(log, episodes);
  const gamma = discounts(episodes);
  const returns = new Float64Array(episodes.count);
  for (let e = 0; e < episodes.count; e++) {
    const first = episodes.start[e]!;
    let before = 1;
    let value = 0;
    for (let at = first; at < episodes.start[e + 1]!; at++) {
      const row = episodes.rows[at]!;
      const weight = running[at]!;
      value +=
        gamma[at - first]! * (before * q.expected[row]! + weight * (log.reward[row]! - q.chosen[row]!));
      before = weight;
    }
    returns[e] = value;
  }
  return meanOverUnits(CHAIN_DR, returns, {
    units: episodes.units,
    exposure: chainExposure(log, episodes),
  });
}
