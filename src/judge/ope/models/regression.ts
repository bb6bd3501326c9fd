/** Ridge and logistic regression on a few rows, each shrunk towards a prior coefficient vector.
 *  Coefficients: one per feature, then the intercept. The intercept is penalised only towards a prior. */
import { choleskyFactor, choleskySolve, sigmoid } from "../../../base/index.ts";
import type { Context } from "../log/index.ts";

export interface RegressionProblem {
  readonly context: Context;
  readonly outcome: Float64Array;
  readonly rows: Int32Array;
  readonly penalty: number;
  /** Undefined: shrink towards 0, leaving the intercept free. */
  readonly prior: Float64Array | undefined;
}

/** Keeps the free intercept's equation solvable when every outcome is the same. */
const INTERCEPT_PENALTY = 1e-6;
const NEWTON_STEPS = 30;
const NEWTON_TOLERANCE = 1e-10;

/** argmin Σ (y − xᵀβ)² + penalty·|β − prior|². */
export function fitRidge(problem: RegressionProblem): Float64Array {
  const size = problem.context.width + 1;
  const beta = problem.prior === undefined ? new Float64Array(size) : problem.prior.slice();
  newtonStep(problem, beta, (score, y) => [y - score, 1]);
  return beta;
}

/** argmax of the penalised likelihood, by Newton's method. Outcomes in [0, 1]. */
export function fitLogistic(problem: RegressionProblem): Float64Array {
  const beta = problem.prior?.slice() ?? new Float64Array(problem.context.width + 1);
  for (let step = 0; step < NEWTON_STEPS; step++) {
    const moved = newtonStep(problem, beta, (score, y) => {
      const p = sigmoid(score);
      // A floor under the curvature keeps separable data from throwing the step to infinity.
      return [y - p, Math.max(p * (1 - p), 1e-4)];
    });
    if (moved < NEWTON_TOLERANCE) break;
  }
  return beta;
}

export function scoreRow(context: Context, row: number, beta: Float64Array): number {
  const { width, values } = context;
  let score = beta[width]!;
  for (let j = 0; j < width; j++) score += values[row * width + j]! * beta[j]!;
  return score;
}

/** Solves (XᵀWX + Λ)·δ = Xᵀg − Λ(β − prior), adds δ to β, and returns its largest component. */
function newtonStep(
  problem: RegressionProblem,
  beta: Float64Array,
  slope: (score: number, y: number) => readonly [gradient: number, curvature: number],
): number {
  const { context, outcome, rows, prior } = problem;
  const { width, values } = context;
  const size = width + 1;
  const hessian = new Float64Array(size * size);
  const step = new Float64Array(size);
  const x = new Float64Array(size).fill(1);
  for (const row of rows) {
    for (let j = 0; j < width; j++) x[j] = values[row * width + j]!;
    const [gradient, curvature] = slope(scoreRow(context, row, beta), outcome[row]!);
    for (let i = 0; i < size; i++) {
      const xi = x[i]!;
      if (xi === 0) continue;
      step[i] = step[i]! + gradient * xi;
      const scaled = curvature * xi;
      for (let j = 0; j <= i; j++) hessian[i * size + j] = hessian[i * size + j]! + scaled * x[j]!;
    }
  }
  for (let i = 0; i < size; i++) {
    const penalty = i === width && prior === undefined ? INTERCEPT_PENALTY : problem.penalty;
    hessian[i * size + i] = hessian[i * size + i]! + penalty;
    step[i] = step[i]! - penalty * (beta[i]! - (prior?.[i] ?? 0));
  }
  choleskySolve(choleskyFactor(hessian, size), step);
  let moved = 0;
  for (let i = 0; i < size; i++) {
    beta[i] = beta[i]! + step[i]!;
    moved = Math.max(moved, Math.abs(step[i]!));
  }
  return moved;
}
