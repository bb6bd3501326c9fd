/** Self-normalised IPS (Swaminathan and Joachims, 2015):  V = Σ w·r / Σ w.
 *  Bias of order 1/n, stays within the range of rewards, does not change when a constant is added to them. */

import { type LoggedDecisions, unitsOf, weightsOf } from "../log/index.ts";
import { type Estimate, ratioOverRows } from "./estimate.ts";

export function snips(log: LoggedDecisions): Estimate {
  const bottoms = weightsOf(log);
  const tops = bottoms.map((w, i) => w * log.reward[i]!);
  return ratioOverRows("SNIPS", { tops, bottoms, units: unitsOf(log) });
}
