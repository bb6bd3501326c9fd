/** Recalibrates a reward model for one target policy, so that DR is about as good as the better one of SNIPS and DR with
 *  the model alone.
 *  DR with β₀ + β₁·q̂ in place of q̂ is  mean(w·r) − β₀·mean(w − 1) − β₁·mean(w·q̂ − v̂),  v̂ = Σ_a π_e·q̂.
 *  The last two means are control variates with expectation 0. (β₀, β₁) = (0, 1) is DR; (V, 0) is SNIPS up to order
 *  1/n. Least squares finds the pair of least variance, within limits: the result is a mix of model and constant
 *  (0 ≤ β₁ ≤ 1), shifted by at most the width of the range of rewards. Without the limits, a log with little exploration
 *  has almost constant weights: its few explored rows then give coefficients of ±100, and DR is wrong by more than the
 *  range.
 *  The coefficients of a fold come from the rows of the other folds. */
import type { Rng } from "../../../base/index.ts";
import { type LoggedDecisions, unitsOf, weightsOf } from "../log/index.ts";
import { forEachFold } from "./folds.ts";
import type { RewardPredictions } from "./reward-predictions.ts";

export function recalibrate(
  log: LoggedDecisions,
  q: RewardPredictions,
  { rng, folds = 5 }: { rng: Rng; folds?: number },
): RewardPredictions {
  const weights = weightsOf(log);
  const units = unitsOf(log);
  const chosen = new Float64Array(weights.length);
  const expected = new Float64Array(weights.length);
  forEachFold(units, { folds: Math.min(folds, units.count), rng }, (train, held) => {
    const [constant, slope] = coefficientsOf(train, { log, q, weights });
    for (const row of held) {
      chosen[row] = constant + slope * q.chosen[row]!;
      expected[row] = constant + slope * q.expected[row]!;
    }
  });
  return { chosen, expected, direct: q.expected };
}

/** Least squares of w·r on 1, w − 1 and w·q̂ − v̂, within the limits. */
function coefficientsOf(
  rows: Int32Array,
  { log, q, weights }: { log: LoggedDecisions; q: RewardPredictions; weights: Float64Array },
): [constant: number, slope: number] {
  const n = rows.length;
  let [ma, mb, my] = [0, 0, 0];
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const i of rows) {
    const w = weights[i]!;
    const reward = log.reward[i]!;
    ma += (w - 1) / n;
    mb += (w * q.chosen[i]! - q.expected[i]!) / n;
    my += (w * reward) / n;
    low = Math.min(low, reward);
    high = Math.max(high, reward);
  }
  let [aa, ab, bb, ay, by] = [0, 0, 0, 0, 0];
  for (const i of rows) {
    const w = weights[i]!;
    const a = w - 1 - ma;
    const b = w * q.chosen[i]! - q.expected[i]! - mb;
    const y = w * log.reward[i]! - my;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    ay += a * y;
    by += b * y;
  }
  // Weights that are constant up to rounding carry no information.
  if (!(aa > 1e-12 * n)) return [0, 1];
  const determinant = aa * bb - ab * ab;
  // A model without variation is a constant, which gives SNIPS.
  const slope = determinant > 1e-9 * aa * bb ? within((aa * by - ab * ay) / determinant, 0, 1) : 0;
  const [share, width] = [1 - slope, high - low];
  return [within((ay - slope * ab) / aa, share * low - width, share * high + width), slope];
}

const within = (value: number, low: number, high: number) => Math.min(high, Math.max(low, value));
