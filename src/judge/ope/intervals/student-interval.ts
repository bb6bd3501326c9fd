/** Student-t:  V ± t_{n−1}·se,  se by the delta method over units,
 *  so it includes the variance of SNIPS's denominator. */
import { type Estimate, standardError } from "../estimators/index.ts";
import { studentQuantile } from "../math/index.ts";
import { checkLevel, type Interval } from "./interval.ts";

export function studentInterval(estimate: Estimate, level = 0.95): Interval {
  const alpha = checkLevel(level);
  const half =
    estimate.units < 2
      ? Number.POSITIVE_INFINITY
      : studentQuantile(1 - alpha / 2, estimate.units - 1) * standardError(estimate);
  return {
    method: "student-t",
    level,
    low: estimate.value - half,
    high: estimate.value + half,
    guarantee: "asymptotic",
  };
}
