/** Propensities for logs that never recorded them: a cross-fitted multinomial logistic regression of the chosen action
 *  on the context. It cannot account for hidden confounders, so results built on it are never certified. sensitivity.ts
 *  computes how much hidden bias would change the answer.
 *  Fitted by Böhning's bound (1992): one factorisation, monotone steps, no step size to choose. */
import { choleskyFactor, choleskySolve, type Rng, RollbookError, softmax } from "../../../base/index.ts";
import {
  type Candidates,
  type Context,
  type LoggedDecisions,
  requireCandidates,
  unitsOf,
} from "../log/index.ts";
import { forEachFold } from "./folds.ts";
import { standardise } from "./regression.ts";

interface PropensityOptions {
  readonly rng: Rng;
  readonly folds?: number;
  readonly penalty?: number;
  /** Smaller estimates are raised to this value: a fitted probability near 0 is extrapolation. */
  readonly floor?: number;
}

const MAX_STEPS = 400;
const TOLERANCE = 1e-7;

/** The log with estimated propensities. */
export function withEstimatedPropensities(log: LoggedDecisions, options: PropensityOptions): LoggedDecisions {
  const { rng, folds = 3, penalty = 1, floor = 0.01 } = options;
  const candidates = requireCandidates(log, "a propensity model");
  const { count, chosen } = candidates;
  checkVariety(chosen);
  const rows = log.reward.length;
  const context = standardise(log.context, rows);
  const all = new Float64Array(rows * count);
  forEachFold(unitsOf(log), { folds, rng }, (train, held) => {
    const beta = fitMultinomial({ context, candidates, rows: train, penalty });
    for (const row of held) scoreAll({ context, row, beta, count, out: all, at: row * count });
  });
  raiseTo(floor, all, count);
  const behaviour = Float64Array.from(chosen, (a, i) => all[i * count + a]!);
  return { ...log, behaviour, candidates: { ...candidates, behaviour: all } };
}

interface Fit {
  readonly context: Context;
  readonly candidates: Candidates;
  readonly rows: Int32Array;
  readonly penalty: number;
}

/** Coefficients, candidate-major: count × (width + 1), the intercept last. */
function fitMultinomial({ context, candidates, rows, penalty }: Fit): Float64Array {
  const { width, values } = context;
  const { count, chosen } = candidates;
  const size = width + 1;
  const beta = new Float64Array(count * size);
  const lower = boundFactor({ context, rows, penalty });
  const p = new Float64Array(count);
  for (let step = 0; step < MAX_STEPS; step++) {
    const gradient = new Float64Array(count * size);
    for (const row of rows) {
      scoreAll({ context, row, beta, count, out: p, at: 0 });
      for (let a = 0; a < count; a++) {
        const gap = (chosen[row] === a ? 1 : 0) - p[a]!;
        for (let j = 0; j < width; j++)
          gradient[a * size + j] = gradient[a * size + j]! + gap * values[row * width + j]!;
        gradient[a * size + width] = gradient[a * size + width]! + gap;
      }
    }
    let moved = 0;
    for (let a = 0; a < count; a++) {
      const part = gradient.subarray(a * size, (a + 1) * size);
      for (let j = 0; j < size; j++) part[j] = part[j]! - penalty * beta[a * size + j]!;
      choleskySolve(lower, part);
      for (let j = 0; j < size; j++) {
        beta[a * size + j] = beta[a * size + j]! + part[j]!;
        moved = Math.max(moved, Math.abs(part[j]!));
      }
    }
    if (moved < TOLERANCE) break;
  }
  return beta;
}

/** Factor of ½·XᵀX + penalty, which bounds each candidate's block of the Hessian. */
function boundFactor({ context, rows, penalty }: Omit<Fit, "candidates">): Float64Array {
  const { width, values } = context;
  const size = width + 1;
  const matrix = new Float64Array(size * size);
  const x = new Float64Array(size).fill(1);
  for (const row of rows) {
    for (let j = 0; j < width; j++) x[j] = values[row * width + j]!;
    for (let i = 0; i < size; i++)
      for (let j = 0; j <= i; j++) matrix[i * size + j] = matrix[i * size + j]! + 0.5 * x[i]! * x[j]!;
  }
  for (let i = 0; i < size; i++) matrix[i * size + i] = matrix[i * size + i]! + penalty;
  return choleskyFactor(matrix, size);
}

function scoreAll({
  context: { width, values },
  row,
  beta,
  count,
  out,
  at,
}: {
  context: Context;
  row: number;
  beta: Float64Array;
  count: number;
  out: Float64Array;
  at: number;
}): void {
  const size = width + 1;
  for (let a = 0; a < count; a++) {
    let score = beta[a * size + width]!;
    for (let j = 0; j < width; j++) score += values[row * width + j]! * beta[a * size + j]!;
    out[at + a] = score;
  }
  softmax(out, at, count);
}

/** Raises every probability to the floor and scales the rest, so that each row still sums to 1. */
function raiseTo(floor: number, all: Float64Array, count: number): void {
  const least = Math.min(floor, 1 / count);
  for (let from = 0; from < all.length; from += count) {
    for (let a = from; a < from + count; a++) all[a] = least + (1 - count * least) * all[a]!;
  }
}

function checkVariety(chosen: Int32Array): void {
  if (chosen.some((a) => a !== chosen[0])) return;
  throw new RollbookError(
    "one-class",
    { action: chosen[0] },
    `every row chose candidate ${chosen[0]}: no propensity can be estimated, and no other policy judged. Log with exploration.`,
  );
}
