/** Recalibrates a reward model for one target policy. DR with the result is no worse than IPS, SNIPS or DR without it.
 *  DR with β₀ + β₁·q̂ in place of q̂ is  mean(w·r) − β₀·mean(w − 1) − β₁·mean(w·q̂ − v̂),  v̂ = Σ_a π_e·q̂.
 *  The last two means are control variates with expectation 0. (β₀, β₁) = (0, 1) is DR; (V, 0) is SNIPS up to order
 *  1/n. Least squares finds the pair of least variance.
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

/** Least squares of w·r on 1, w − 1 and w·q̂ − v̂. */
function coefficientsOf(
  rows: Int32Array,
  { log, q, weights }: { log: LoggedDecisions; q: RewardPredictions; weights: Float64Array },
): [constant: number, slope: number] {
  const n = rows.length;
  let [ma, mb, my] = [0, 0, 0];
  for (const i of rows) {
    const w = weights[i]!;
    ma += (w - 1) / n;
    mb += (w * q.chosen[i]! - q.expected[i]!) / n;
    my += (w * log.reward[i]!) / n;
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
  if (!(determinant > 1e-9 * aa * bb)) return [ay / aa, 0];
  return [(bb * ay - ab * by) / determinant, (aa * by - ab * ay) / determinant];
}
