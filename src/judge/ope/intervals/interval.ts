/** Intervals with their guarantees, and the inputs that all intervals share. */
import { RollbookError } from "../../../base/index.ts";
import { type Estimate, unitValues } from "../estimators/index.ts";

export interface Interval {
  readonly method: "bootstrap" | "student-t" | "hoeffding" | "empirical-bernstein" | "confidence-sequence";
  readonly level: number;
  readonly low: number;
  readonly high: number;
  /** Asymptotic: valid for many units. Finite-sample: valid for any number of units. Any-time: also valid when computed
   *  repeatedly on a growing log. */
  readonly guarantee: "asymptotic" | "finite-sample" | "any-time";
  /** Widened for skewness, or for outcomes that the log has not shown. */
  readonly corrected?: true;
}

/** Name of an interval in texts. A corrected interval is not symmetric about its estimate. */
export function methodText({ method, corrected }: Pick<Interval, "method" | "corrected">): string {
  return corrected === true ? `${method}, corrected` : method;
}

/** The range of a unit's term, known before the data. Never use the sample's extremes. */
export interface Range {
  readonly low: number;
  readonly high: number;
}

export function checkLevel(level: number): number {
  if (level > 0 && level < 1) return 1 - level;
  throw new RollbookError(
    "bad-level",
    { level },
    `level ${level} is not between 0 and 1. Use 0.95 for 95 %.`,
  );
}

/** The terms of a mean, checked to lie inside the promised range. */
export function boundedTerms(estimate: Estimate, range: Range | undefined, method: string): Float64Array {
  if (range === undefined) {
    throw new RollbookError(
      "range-unknown",
      { method, estimator: estimate.name },
      `${method} needs the range of ${estimate.name}'s terms, known before the data. The sample's maximum is not one: state a propensity floor and a reward range.`,
    );
  }
  const terms = unitValues(estimate);
  if (terms === undefined) {
    throw new RollbookError(
      "not-a-mean",
      { method, estimator: estimate.name },
      `${method} holds for means, and ${estimate.name} is a ratio. Use IPS or DR with it, or Student-t and the bootstrap.`,
    );
  }
  const row = terms.findIndex((x) => !(x >= range.low && x <= range.high));
  if (row >= 0) {
    throw new RollbookError(
      "range-broken",
      { unit: row, value: terms[row], ...range },
      `unit ${row}: ${estimate.name}'s term ${terms[row]} is outside the promised range ${range.low} … ${range.high}. The promise was wrong: state the true range.`,
    );
  }
  return terms;
}
