/** Self-normalised IPS (Swaminathan and Joachims, 2015):  V = Σ w·r / Σ w.
 *  Bias of order 1/n. The value stays within the range of rewards.
 *  A constant added to all rewards shifts it equally. */

import { type LoggedDecisions, outcomeWidth, unitsOf, weightsOf } from "../log/index.ts";
import { type Estimate, ratioOverUnits } from "./estimate.ts";

export function snips(log: LoggedDecisions): Estimate {
  const bottoms = weightsOf(log);
  const tops = bottoms.map((w, i) => w * log.reward[i]!);
  const units = unitsOf(log);
  const exposure = { weights: bottoms, units, width: outcomeWidth(log) };
  return ratioOverUnits("SNIPS", { tops, bottoms, units, exposure });
}
