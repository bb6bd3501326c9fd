/** Logistic regression of a two-valued reward on dense features, shrunk towards a prior coefficient vector.
 *  Fitted by Böhning's bound (1992): ¼·XᵀX + penalty bounds the Hessian. So one factorisation serves every step, and
 *  each step lowers the loss. Coefficients: one per feature, then the intercept. */
import { choleskyFactor, choleskySolve, exp } from "../../../base/index.ts";
import type { Context } from "../log/index.ts";
import { scoreRow } from "./regression.ts";

/** Coefficients need not be exact: predictions are chosen by their error and recalibrated afterwards. */
const MAX_STEPS = 25;
const TOLERANCE = 1e-3;

interface LogisticProblem {
  readonly context: Context;
  /** 0 or 1. */
  readonly outcome: Float64Array;
  readonly rows: Int32Array;
  readonly penalty: number;
  /** The penalty shrinks the coefficients towards this vector. Absent: towards 0, with a free intercept. */
  readonly prior?: Float64Array;
  /** XᵀX of the rows, lower triangle. */
  readonly gram: Float64Array;
}

export function fitLogisticModel({
  context,
  outcome,
  rows,
  penalty,
  prior,
  gram,
}: LogisticProblem): Float64Array {
  const { width, values } = context;
  const size = width + 1;
  const beta = prior?.slice() ?? new Float64Array(size);
  const bound = gram.map((each) => each / 4);
  const penaltyOf = (i: number) => (i === width && prior === undefined ? 1e-3 : penalty);
  for (let i = 0; i < size; i++) bound[i * size + i] = bound[i * size + i]! + penaltyOf(i);
  const lower = choleskyFactor(bound, size);
  for (let round = 0; round < MAX_STEPS; round++) {
    const step = new Float64Array(size);
    for (const row of rows) {
      const gap = outcome[row]! - chance(scoreRow(context, row, beta));
      for (let j = 0; j < width; j++) step[j] = step[j]! + gap * values[row * width + j]!;
      step[width] = step[width]! + gap;
    }
    for (let i = 0; i < size; i++) step[i] = step[i]! - penaltyOf(i) * (beta[i]! - (prior?.[i] ?? 0));
    choleskySolve(lower, step);
    let moved = 0;
    for (let i = 0; i < size; i++) {
      beta[i] = beta[i]! + step[i]!;
      moved = Math.max(moved, Math.abs(step[i]!));
    }
    if (moved < TOLERANCE) break;
  }
  return beta;
}

/** 1 / (1 + e⁻ˢ). */
export function chance(score: number): number {
  return 1 / (1 + exp(-score));
}
