/** Weighted per-decision importance sampling:  V = Σ_t γᵗ · (Σ_e ρ_t·r_t / Σ_e ρ_t).
 *  Sums over the episodes e of one unit are means, so that every unit counts once. Consistent, slightly biased, far
 *  less variable than PDIS.
 *  An ended episode stays in an absorbing state: its reward is 0, and its last weight stays in the denominator. */
import { discounts, episodesOf, type LoggedDecisions, runningWeights } from "../log/index.ts";
import { chainExposure } from "./chain-exposure.ts";
import { type Estimate, estimateOf, perUnit, type Ratio } from "./estimate.ts";

export function weightedPerDecisionIs(log: LoggedDecisions): Estimate {
  const episodes = episodesOf(log);
  const running = runningWeights(log, episodes);
  const gamma = discounts(episodes);
  const ratios: Ratio[] = [];
  for (let t = 0; t < episodes.horizon; t++) {
    const top = new Float64Array(episodes.count);
    const bottom = new Float64Array(episodes.count);
    for (let e = 0; e < episodes.count; e++) {
      const last = episodes.start[e + 1]! - 1;
      const at = Math.min(episodes.start[e]! + t, last);
      bottom[e] = running[at]!;
      if (at === episodes.start[e]! + t) top[e] = gamma[t]! * running[at]! * log.reward[episodes.rows[at]!]!;
    }
    ratios.push({ top: perUnit(top, episodes.units), bottom: perUnit(bottom, episodes.units) });
  }
  return estimateOf("WPDIS", ratios, chainExposure(log, episodes));
}
