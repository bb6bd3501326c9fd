/** Sparse ridge regression by conjugate gradients: a model of a reward, or of the difference of two rewards.
 *  In: rows, targets. Out: weights that minimise Σ s·(y − w·x)²/Σs + l2·‖w‖², without a penalty on the bias.
 *  Deterministic: fixed order, no random draws. Does not choose l2: the caller does, on held-out data. */
import { RollbookError } from "../../../src/base/index.ts";
import type { SparseRows } from "../../../src/learn/rows/sparse-rows.ts";

export interface RidgeData {
  readonly rows: SparseRows;
  readonly targets: Float64Array;
  /** One per row; absent: 1 each. */
  readonly weights?: Float64Array;
}

export interface RidgeOptions {
  readonly l2: number;
  readonly maxIterations?: number;
  /** Stops when the residual falls to this share of its start. */
  readonly tolerance?: number;
}

export interface Ridge {
  readonly weights: Float64Array;
  readonly iterations: number;
}

export function trainRidge(data: RidgeData, options: RidgeOptions): Ridge {
  const { l2, maxIterations = 100, tolerance = 1e-4 } = options;
  checkData(data);
  const { size } = data.rows;
  const weights = new Float64Array(size);
  const residual = gradientOf(data, weights, l2);
  for (let i = 0; i < size; i++) residual[i] = -residual[i]!;
  const direction = Float64Array.from(residual);
  let norm = dot(residual, residual);
  const enough = norm * tolerance * tolerance;
  let iterations = 0;
  for (; iterations < maxIterations && norm > enough; iterations++) {
    const image = curvature(data, direction, l2);
    const step = norm / dot(direction, image);
    for (let i = 0; i < size; i++) {
      weights[i] = weights[i]! + step * direction[i]!;
      residual[i] = residual[i]! - step * image[i]!;
    }
    const next = dot(residual, residual);
    const share = next / norm;
    for (let i = 0; i < size; i++) direction[i] = residual[i]! + share * direction[i]!;
    norm = next;
  }
  return { weights, iterations };
}

export function predictRow({ start, indices, values }: SparseRows, weights: Float64Array, r: number): number {
  let sum = 0;
  for (let e = start[r]!; e < start[r + 1]!; e++) sum += weights[indices[e]!]! * values[e]!;
  return sum;
}

/** Half the gradient of the objective at `weights`; exported for the finite-difference check. */
export function gradientOf(data: RidgeData, weights: Float64Array, l2: number): Float64Array {
  return sweep(data, { point: weights, l2, offset: data.targets });
}

/** Half of the Hessian times `direction`. */
function curvature(data: RidgeData, direction: Float64Array, l2: number): Float64Array {
  return sweep(data, { point: direction, l2 });
}

function sweep(
  { rows, weights: shares, targets }: RidgeData,
  { point, l2, offset }: { point: Float64Array; l2: number; offset?: Float64Array },
): Float64Array {
  const { start, indices, values, size } = rows;
  const out = new Float64Array(size);
  const count = targets.length;
  const total = shares === undefined ? count : shares.reduce((sum, each) => sum + each, 0);
  for (let r = 0; r < count; r++) {
    let error = predictRow(rows, point, r) - (offset === undefined ? 0 : offset[r]!);
    error *= (shares === undefined ? 1 : shares[r]!) / total;
    for (let e = start[r]!; e < start[r + 1]!; e++) {
      const at = indices[e]!;
      out[at] = out[at]! + error * values[e]!;
    }
  }
  for (let i = 1; i < size; i++) out[i] = out[i]! + l2 * point[i]!;
  return out;
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

function checkData({ rows, targets }: RidgeData): void {
  if (targets.length === 0 || rows.start.length !== targets.length + 1)
    throw new RollbookError(
      "empty-split",
      { targets: targets.length },
      `${targets.length} targets for ${rows.start.length - 1} rows. Training needs at least one row.`,
    );
  const bad = targets.findIndex((each) => !Number.isFinite(each));
  if (bad >= 0)
    throw new RollbookError(
      "bad-training-data",
      { row: bad, value: String(targets[bad]) },
      `row ${bad}: reward ${targets[bad]} is not finite. Repair the row or leave it out.`,
    );
}
