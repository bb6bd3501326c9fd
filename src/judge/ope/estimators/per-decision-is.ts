/** Per-decision importance sampling (Precup, Sutton and Singh, 2000):  V = mean over episodes of Σ_t γᵗ·ρ_t·r_t.
 *  The episodes of one unit count as one, by their mean. Unbiased. A reward is weighted only by the choices made before
 *  it. The variance grows exponentially with the length. */
import { discounts, episodesOf, type LoggedDecisions, runningWeights } from "../log/index.ts";
import { chainExposure } from "./chain-exposure.ts";
import { type Estimate, meanOverUnits } from "./estimate.ts";

export function perDecisionIs(log: LoggedDecisions): Estimate {
  const episodes = episodesOf(log);
  const running = runningWeights(log, episodes);
  const gamma = discounts(episodes);
  const returns = new Float64Array(episodes.count);
  for (let e = 0; e < episodes.count; e++) {
    const first = episodes.start[e]!;
    let value = 0;
    for (let at = first; at < episodes.start[e + 1]!; at++)
      value += gamma[at - first]! * running[at]! * log.reward[episodes.rows[at]!]!;
    returns[e] = value;
  }
  return meanOverUnits("PDIS", returns, { units: episodes.units, exposure: chainExposure(log, episodes) });
}
