/** Inverse propensity scoring (Horvitz and Thompson, 1952):  V = mean(w·r),  w = π_e / π_b.
 *  Unbiased if every action of the target could have been logged. Its variance grows with the weights. */

import { type LoggedDecisions, outcomeWidth, unitsOf, weightsOf } from "../log/index.ts";
import { type Estimate, meanOverUnits } from "./estimate.ts";

export const IPS = "IPS";

export function ips(log: LoggedDecisions): Estimate {
  const weights = weightsOf(log);
  const terms = weights.map((w, i) => w * log.reward[i]!);
  const units = unitsOf(log);
  return meanOverUnits(IPS, terms, { units, exposure: { weights, units, width: outcomeWidth(log) } });
}
