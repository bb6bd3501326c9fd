/** The naive estimate: the mean logged reward of rows where the target agrees with the log,  Σ π_e·r / Σ π_e.
 *  Not an estimate of the target's value: it keeps the logging policy's choice of contexts.
 *  Shown for comparison only. */

import type { LoggedDecisions } from "../log/index.ts";
import { sum } from "./estimate.ts";

export function naiveAgreement(log: LoggedDecisions): number {
  const agreement = sum(log.target);
  return agreement === 0 ? Number.NaN : sum(log.target.map((p, i) => p * log.reward[i]!)) / agreement;
}
