/** Possible effect of an unseen return on an estimate for chains.
 *  A return counts with the weight of its whole episode. */
import { type Episodes, episodeWeights, type LoggedDecisions, outcomeWidth } from "../log/index.ts";
import type { Exposure } from "./estimate.ts";

export function chainExposure(log: LoggedDecisions, episodes: Episodes): Exposure {
  return { weights: episodeWeights(log, episodes), units: episodes.units, width: outcomeWidth(log) };
}
