/** A confidence sequence: intervals that hold at all times at once, so a growing log may be evaluated repeatedly.
 *  The predictable plug-in empirical Bernstein sequence of Waudby-Smith and Ramdas (2024, theorem 2), for terms in a
 *  range known before the data. Intervals are intersected over time. Terms must arrive in logging order. */
import { log, log1p, RollbookError } from "../../../base/index.ts";
import type { Estimate } from "../estimators/index.ts";
import { boundedTerms, checkLevel, type Interval, type Range } from "./interval.ts";

/** Bets stay below this value, where the variance process is finite (the authors' choice). */
const LARGEST_BET = 0.5;

export function confidenceSequence(
  estimate: Estimate,
  { range, level = 0.95 }: { range: Range | undefined; level?: number },
): Interval {
  const terms = boundedTerms(estimate, range, "a confidence sequence");
  const sequence = new ConfidenceSequence({ range: range!, level });
  for (const term of terms) sequence.add(term);
  return sequence.interval();
}

/** Takes one term at a time; `interval()` can be called after every term. */
export class ConfidenceSequence {
  readonly #range: Range;
  readonly #level: number;
  readonly #logTwoOverAlpha: number;
  #count = 0;
  #sum = 0;
  #squares = 0;
  #bets = 0;
  #weighted = 0;
  #penalty = 0;
  #low = 0;
  #high = 1;

  constructor({ range, level }: { range: Range; level: number }) {
    if (!(range.high > range.low)) {
      throw new RollbookError("bad-range", { ...range }, `range ${range.low} … ${range.high} is empty.`);
    }
    this.#range = range;
    this.#level = level;
    this.#logTwoOverAlpha = log(2 / checkLevel(level));
  }

  add(term: number): void {
    const { low, high } = this.#range;
    const x = (term - low) / (high - low);
    if (!(x >= 0 && x <= 1)) {
      const row = this.#count;
      throw new RollbookError(
        "range-broken",
        { unit: row, value: term, low, high },
        `unit ${row}: ${term} is outside the promised range ${low} … ${high}. State the true range.`,
      );
    }
    // The bet on x may use only earlier terms.
    const meanBefore = (0.5 + this.#sum) / (this.#count + 1);
    const varianceBefore = (0.25 + this.#squares) / (this.#count + 1);
    this.#count++;
    const bet = Math.min(
      LARGEST_BET,
      Math.sqrt((2 * this.#logTwoOverAlpha) / (varianceBefore * this.#count * log1p(this.#count))),
    );
    this.#bets += bet;
    this.#weighted += bet * x;
    this.#penalty += (x - meanBefore) * (x - meanBefore) * (-log1p(-bet) - bet);
    this.#sum += x;
    const meanNow = (0.5 + this.#sum) / (this.#count + 1);
    this.#squares += (x - meanNow) * (x - meanNow);
    const centre = this.#weighted / this.#bets;
    const half = (this.#logTwoOverAlpha + this.#penalty) / this.#bets;
    this.#low = Math.max(this.#low, centre - half);
    this.#high = Math.min(this.#high, centre + half);
  }

  interval(): Interval {
    const { low, high } = this.#range;
    return {
      method: "confidence-sequence",
      level: this.#level,
      low: low + this.#low * (high - low),
      high: low + this.#high * (high - low),
      guarantee: "any-time",
    };
  }
}
