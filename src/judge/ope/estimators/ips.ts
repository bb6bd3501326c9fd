/** Inverse propensity scoring (Horvitz and Thompson, 1952):  V = mean(w·r),  w = π_e / π_b.
 *  Unbiased where every action of the target could have been logged; its variance grows with the weights. */

import { type LoggedDecisions, unitsOf, weightsOf } from "../log/index.ts";
import { type Estimate, meanOverRows } from "./estimate.ts";

export function ips(log: LoggedDecisions): Estimate {
  const terms = weightsOf(log);
  for (let i = 0; i < terms.length; i++) terms[i] = terms[i]! * log.reward[i]!;
  return meanOverRows("IPS", terms, unitsOf(log));
}
