/** Bounds that hold for every sample size, given the range of a term before the data.
 *  Hoeffding (1963):  b·√(ln(2/α) / 2n).  Empirical Bernstein (Maurer and Pontil, 2009), each side at α/2:
 *  √(2V·ln(4/α)/n) + 7b·ln(4/α) / (3(n−1)),  b = high − low, V the sample variance. */
import { log } from "../../../base/index.ts";
import { type Estimate, sum } from "../estimators/index.ts";
import { boundedTerms, checkLevel, type Interval, type Range } from "./interval.ts";

interface BoundOptions {
  readonly range: Range | undefined;
  readonly level?: number;
}

export function hoeffdingInterval(estimate: Estimate, { range, level = 0.95 }: BoundOptions): Interval {
  const alpha = checkLevel(level);
  const { length } = boundedTerms(estimate, range, "Hoeffding's bound");
  const half = (range!.high - range!.low) * Math.sqrt(log(2 / alpha) / (2 * length));
  return within("hoeffding", { centre: estimate.value, half, level, range: range! });
}

export function bernsteinInterval(estimate: Estimate, { range, level = 0.95 }: BoundOptions): Interval {
  const alpha = checkLevel(level);
  const terms = boundedTerms(estimate, range, "the empirical Bernstein bound");
  const n = terms.length;
  const width = range!.high - range!.low;
  const logTerm = log(4 / alpha);
  const half =
    n < 2
      ? width
      : Math.sqrt((2 * sampleVariance(terms) * logTerm) / n) + (7 * width * logTerm) / (3 * (n - 1));
  return within("empirical-bernstein", { centre: estimate.value, half, level, range: range! });
}

function sampleVariance(terms: Float64Array): number {
  const mean = sum(terms) / terms.length;
  return sum(terms.map((x) => (x - mean) * (x - mean))) / (terms.length - 1);
}

/** The mean lies in the range for any data, so a bound is cut at the range. */
function within(
  method: Interval["method"],
  { centre, half, level, range }: { centre: number; half: number; level: number; range: Range },
): Interval {
  return {
    method,
    level,
    low: Math.max(range.low, centre - half),
    high: Math.min(range.high, centre + half),
    guarantee: "finite-sample",
  };
}
