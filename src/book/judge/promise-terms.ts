/** Terms that must be fixed before the data is seen, for the bounds that need them. */
import type { Range } from "../../judge/ope/index.ts";

export interface PromiseTerms {
  /** Static table to fall back to (default: the one fitted in training). */
  readonly table?: string | undefined;
  /** Lowest probability that a logged choice could have. */
  readonly propensityFloor: number;
  readonly qualityRange: Range;
}

export const PROMISE_TERMS: PromiseTerms = { propensityFloor: 0.05, qualityRange: { low: 0, high: 1 } };
