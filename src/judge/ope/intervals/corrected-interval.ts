/** Student-t for rare outcomes and skewed weights: on each side, the widest of three intervals.
 *  1. V ± t·se.
 *  2. Score limits of events. The contributions below and above the estimate are two sums of events. Their standard
 *     errors are s₋ and s₊. An event has size e = √(Σφ⁴/Σφ²)/n, φ the influence values of one sign.
 *     Score limits of a Poisson sum reach ±e·t²/2 + t·√(s² + e²t²/4) above and below it.
 *     Limits of a difference add up in squares (Zou and Donner 2008). If few events carry both, the errors of the
 *     estimate and of its standard error are correlated in t; here they are not.
 *  3. V ± ln(1/α₁)·event, α₁ the error of one side. An outcome that was not seen in m rows has a probability of at most
 *     ln(1/α₁)/m. `event` is the effect of one such outcome on the estimate, at the size-weighted mean weight.
 *  The third is the variance floor: a log without a failure is not certain. Asymptotic, as its parts. */
import { log } from "../../../base/index.ts";
import { type Estimate, type Exposure, influenceOf } from "../estimators/index.ts";
import { studentQuantile } from "../math/index.ts";
import { checkLevel, type Interval } from "./interval.ts";
import { studentInterval } from "./student-interval.ts";

export function correctedInterval(estimate: Estimate, level = 0.95): Interval {
  const alpha = checkLevel(level);
  const { units, value } = estimate;
  const plain = studentInterval(estimate, level);
  const event = eventSize(estimate.exposure);
  if (units < 2 || event === Number.POSITIVE_INFINITY)
    return { ...plain, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY };
  const { below, above } = scoreSides(estimate, studentQuantile(1 - alpha / 2, units - 1));
  const unseen = event * log(2 / alpha);
  return widened(plain, { low: value - Math.max(below, unseen), high: value + Math.max(above, unseen) });
}

/** Moves each end outwards to the farther of the two intervals. */
export function widened(interval: Interval, to: { readonly low: number; readonly high: number }): Interval {
  const [low, high] = [Math.min(interval.low, to.low), Math.max(interval.high, to.high)];
  const corrected = high - low > NOTABLE * (interval.high - interval.low);
  return { ...interval, low, high, ...(corrected ? { corrected } : {}) };
}

/** Corrections below a hundredth of the width are not reported. */
const NOTABLE = 1.01;

/** The effect of one unseen outcome on the estimate: width · (ΣW²/ΣW) / n. W is the mean absolute weight of a unit's
 *  rows, n the number of units. Infinite if the width of an outcome is unknown. */
function eventSize(exposure: Exposure | undefined): number {
  if (exposure === undefined) return 0;
  const { weights, units, width } = exposure;
  const ofUnit = new Float64Array(units.count);
  for (let i = 0; i < weights.length; i++)
    ofUnit[units.of[i]!] = ofUnit[units.of[i]!]! + Math.abs(weights[i]!) / (units.rows?.[units.of[i]!] ?? 1);
  let [total, squares] = [0, 0];
  for (const weight of ofUnit) {
    total += weight;
    squares += weight * weight;
  }
  if (total <= ROUNDING * units.count) return 0;
  return width === 0 ? Number.POSITIVE_INFINITY : (width * (squares / total)) / units.count;
}

/** Smaller mean weights are rounding errors: the two policies choose alike. */
const ROUNDING = 1e-12;

/** Contributions of one sign: their standard error, and the size of one event. */
interface EventStream {
  readonly error: number;
  readonly size: number;
}

/** Distances of the score limits below and above the estimate. */
function scoreSides(estimate: Estimate, t: number): { below: number; above: number } {
  const influence = influenceOf(estimate);
  const lowering = streamOf(influence, (x) => x < 0);
  const raising = streamOf(influence, (x) => x > 0);
  return {
    below: joined(more(lowering, t), fewer(raising, t)),
    above: joined(more(raising, t), fewer(lowering, t)),
  };
}

function streamOf(influence: Float64Array, isOf: (x: number) => boolean): EventStream {
  const n = influence.length;
  let [squares, fourths] = [0, 0];
  for (const x of influence) {
    if (!isOf(x)) continue;
    squares += x * x;
    fourths += x * x * (x * x);
  }
  if (squares === 0) return { error: 0, size: 0 };
  return { error: Math.sqrt(squares / (n * (n - 1))), size: Math.sqrt(fourths / squares) / n };
}

/** Effect of more events than were seen. */
function more({ error, size }: EventStream, t: number): number {
  return (size * t * t) / 2 + t * Math.sqrt(error * error + (size * size * t * t) / 4);
}

/** Effect of fewer events than were seen. */
function fewer({ error, size }: EventStream, t: number): number {
  return t * Math.sqrt(error * error + (size * size * t * t) / 4) - (size * t * t) / 2;
}

function joined(a: number, b: number): number {
  return Math.sqrt(a * a + b * b);
}
