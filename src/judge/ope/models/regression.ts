/** Ridge regression on dense features, shrunk towards a prior coefficient vector.
 *  Coefficients: one per feature, then the intercept. The intercept is penalised only towards a prior. */
import { choleskyFactor, choleskySolve, RollbookError } from "../../../base/index.ts";
import type { Candidates, Context } from "../log/index.ts";

interface RegressionProblem {
  readonly context: Context;
  readonly outcome: Float64Array;
  readonly rows: Int32Array;
  readonly penalty: number;
}

const MAX_WIDTH = 2048;
/** Keeps the free intercept's equation solvable if all outcomes are equal. */
const INTERCEPT_PENALTY = 1e-6;

/** XᵀX (lower triangle) and Xᵀy of some rows: one pass serves every penalty and prior. */
export interface NormalEquations {
  readonly size: number;
  readonly gram: Float64Array;
  readonly moment: Float64Array;
}

export function normalEquations({
  context,
  outcome,
  rows,
}: Omit<RegressionProblem, "penalty">): NormalEquations {
  const { width, values } = context;
  const size = width + 1;
  const gram = new Float64Array(size * size);
  const moment = new Float64Array(size);
  const x = new Float64Array(size).fill(1);
  for (const row of rows) {
    for (let j = 0; j < width; j++) x[j] = values[row * width + j]!;
    const y = outcome[row]!;
    for (let i = 0; i < size; i++) {
      const xi = x[i]!;
      if (xi === 0) continue;
      moment[i] = moment[i]! + y * xi;
      for (let j = 0; j <= i; j++) gram[i * size + j] = gram[i * size + j]! + xi * x[j]!;
    }
  }
  return { size, gram, moment };
}

/** argmin Σ (y − xᵀβ)² + penalty·|β − prior|²: solves (XᵀX + Λ)·δ = Xᵀy − XᵀXp for β = p + δ, with the prior p or 0.
 *  Without a prior the intercept has no penalty. */
export function solveNormalEquations(
  { size, gram, moment }: NormalEquations,
  penalty: number,
  prior?: Float64Array,
): Float64Array {
  const step = moment.slice();
  if (prior !== undefined)
    for (let i = 0; i < size; i++)
      for (let j = 0; j < size; j++)
        step[i] = step[i]! - gram[i >= j ? i * size + j : j * size + i]! * prior[j]!;
  const hessian = gram.slice();
  for (let i = 0; i < size; i++) {
    const at = i * size + i;
    hessian[at] = hessian[at]! + (i === size - 1 && prior === undefined ? INTERCEPT_PENALTY : penalty);
  }
  choleskySolve(choleskyFactor(hessian, size), step);
  return prior === undefined ? step : step.map((each, i) => each + prior[i]!);
}

/** One model per action, fitted on the rows that chose it and shrunk towards the model of all rows. */
export function fitRidgePerAction(
  problem: RegressionProblem,
  rowsByAction: readonly Int32Array[],
): Float64Array[] {
  const pooled = solveNormalEquations(normalEquations(problem), problem.penalty);
  return rowsByAction.map((rows) =>
    rows.length === 0
      ? pooled
      : solveNormalEquations(normalEquations({ ...problem, rows }), problem.penalty, pooled),
  );
}
/** The entries of `rows` that chose each action. */
export function rowsByAction(rows: Int32Array, { count, chosen }: Candidates): Int32Array[] {
  const lists: number[][] = Array.from({ length: count }, () => []);
  for (let i = 0; i < rows.length; i++) lists[chosen[rows[i]!]!]!.push(rows[i]!);
  return lists.map((list) => Int32Array.from(list));
}

export function scoreRow(context: Context, row: number, beta: Float64Array): number {
  const { width, values } = context;
  let score = beta[width]!;
  for (let j = 0; j < width; j++) score += values[row * width + j]! * beta[j]!;
  return score;
}

/** Scales each feature to zero mean and unit variance, so that one penalty fits all. Constant features do not
 *  distinguish rows and are left out; no prediction changes. */
export function standardise(context: Context | undefined, rows: number): Context {
  const { width, values } = context ?? { width: 0, values: new Float64Array(0) };
  if (width > MAX_WIDTH) {
    throw new RollbookError(
      "too-wide",
      { width, limit: MAX_WIDTH },
      `${width} features are too many for a dense model (limit ${MAX_WIDTH}). Hash or select them, or bring predictions.`,
    );
  }
  const varying = varyingColumns({ width, values }, rows);
  const out = new Float64Array(rows * varying.length);
  for (const [place, column] of varying.entries()) {
    let mean = 0;
    for (let i = 0; i < rows; i++) mean += values[i * width + column]!;
    mean /= rows;
    let square = 0;
    for (let i = 0; i < rows; i++) {
      const gap = values[i * width + column]! - mean;
      square += gap * gap;
    }
    const scale = square > 0 ? 1 / Math.sqrt(square / rows) : 0;
    for (let i = 0; i < rows; i++)
      out[i * varying.length + place] = (values[i * width + column]! - mean) * scale;
  }
  return { width: varying.length, values: out };
}

function varyingColumns({ width, values }: Context, rows: number): number[] {
  return Array.from({ length: width }, (_, column) => column).filter((column) => {
    for (let i = 1; i < rows; i++) if (values[i * width + column] !== values[column]) return true;
    return false;
  });
}
