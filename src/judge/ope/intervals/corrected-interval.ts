/** Student-t for rare outcomes and skewed weights: the widest of three intervals, side by side.
 *  1. V ± t·se.
 *  2. Hall's (1992) transformation of t, which removes the first-order effect of skewness on each side:
 *     V − σ·g⁻¹(±t/√n),  g⁻¹(x) = 3/γ·((1 + γ(x − γ/6n))^{1/3} − 1),  γ the skewness of the influence values.
 *  3. V ± ln(1/α₁)·event, α₁ the error of one side: an outcome that was not seen in m rows has a probability of at most
 *     ln(1/α₁)/m, and `event` is what one such outcome does to the estimate, at the size-weighted mean weight.
 *  The third is the variance floor: no log shows certainty because it has not shown a failure. Asymptotic, as its parts. */
import { exp, log } from "../../../base/index.ts";
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
  const { below, above } = hallSides(estimate, studentQuantile(1 - alpha / 2, units - 1));
  const unseen = event * log(2 / alpha);
  return widened(plain, { low: value - Math.max(below, unseen), high: value + Math.max(above, unseen) });
}

/** Every end as far out as the farther of the two. */
export function widened(interval: Interval, to: { readonly low: number; readonly high: number }): Interval {
  const [low, high] = [Math.min(interval.low, to.low), Math.max(interval.high, to.high)];
  const corrected = high - low > NOTABLE * (interval.high - interval.low);
  return { ...interval, low, high, ...(corrected ? { corrected } : {}) };
}

/** Corrections below a hundredth of the width are not worth a word. */
const NOTABLE = 1.01;

/** What one unseen outcome adds to the estimate: width · (ΣW²/ΣW) / n, W the mean absolute weight of a unit's rows, n
 *  units. Infinite where the width of an outcome is unknown. */
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

/** Mean weights below this are rounding: the two policies choose alike. */
const ROUNDING = 1e-12;

function momentsOf(influence: Float64Array): { deviation: number; skewness: number } {
  let [squares, cubes] = [0, 0];
  for (const x of influence) {
    squares += x * x;
    cubes += x * x * x;
  }
  const deviation = Math.sqrt(squares / influence.length);
  return {
    deviation,
    skewness: deviation > 0 ? cubes / influence.length / (deviation * deviation * deviation) : 0,
  };
}

/** How far Hall's interval reaches below and above the estimate. */
function hallSides(estimate: Estimate, t: number): { below: number; above: number } {
  const n = estimate.units;
  const { deviation, skewness: g } = momentsOf(influenceOf(estimate));
  const scale = deviation * Math.sqrt(n / (n - 1));
  const x = t / Math.sqrt(n);
  // Below this the cube root loses more digits than the correction has.
  if (Math.abs(g) < 1e-6) return { below: scale * x, above: scale * x };
  const inverse = (at: number) => (3 / g) * (cubeRoot(1 + g * (at - g / (6 * n))) - 1);
  return { below: scale * inverse(x), above: -scale * inverse(-x) };
}

/** Engines differ in the last bits of Math.cbrt, and bounds are sealed. */
function cubeRoot(x: number): number {
  if (x === 0) return 0;
  const root = Math.sign(x) * exp(log(Math.abs(x)) / 3);
  return root - (root - x / (root * root)) / 3;
}
