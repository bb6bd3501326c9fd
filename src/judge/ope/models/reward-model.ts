/** Cross-fitted reward models: one ridge or logistic regression per action, shrunk towards a pooled one.
 *  In: a log with candidates and context. Out: out-of-fold predictions. Deterministic given the rng.
 *  An action that a fold never saw gets the pooled model, not a guess of 0. */
import { type Rng, RollbookError, sigmoid } from "../../../base/index.ts";
import { type Context, candidatesOf, type LoggedDecisions, unitsOf } from "../log/index.ts";
import { dealFolds } from "./folds.ts";
import { fitLogistic, fitRidge, scoreRow } from "./regression.ts";
import { predictionsFrom, type RewardPredictions } from "./reward-predictions.ts";

export interface RewardModelOptions {
  /** Logistic wants rewards in [0, 1]. */
  readonly kind: "ridge" | "logistic";
  readonly rng: Rng;
  readonly folds?: number;
  /** Ridge penalty on standardised features. */
  readonly penalty?: number;
}

export const MAX_WIDTH = 2048;
const NO_CONTEXT: Context = { width: 0, values: new Float64Array(0) };

export function crossFitRewards(log: LoggedDecisions, options: RewardModelOptions): RewardPredictions {
  return predictionsFrom(log, crossFitMatrix(log, options));
}

/** q̂ as a matrix, rows × K. */
export function crossFitMatrix(log: LoggedDecisions, options: RewardModelOptions): Float64Array {
  const { kind, rng, folds = 3, penalty = 1 } = options;
  const { count, chosen } = candidatesOf(log, "a reward model");
  if (kind === "logistic") checkUnitRange(log.reward);
  const context = standardise(log.context ?? NO_CONTEXT, log.reward.length);
  const foldOf = dealFolds(unitsOf(log), folds, rng);
  const q = new Float64Array(log.reward.length * count);
  const regress = kind === "ridge" ? fitRidge : fitLogistic;
  for (let fold = 0; fold < folds; fold++) {
    const train = rowsWhere(foldOf, (f) => f !== fold);
    const pooled = regress({ context, outcome: log.reward, rows: train, penalty, prior: undefined });
    for (let action = 0; action < count; action++) {
      const rows = train.filter((row) => chosen[row] === action);
      const beta =
        rows.length === 0 ? pooled : regress({ context, outcome: log.reward, rows, penalty, prior: pooled });
      for (let row = 0; row < foldOf.length; row++) {
        if (foldOf[row] !== fold) continue;
        const score = scoreRow(context, row, beta);
        q[row * count + action] = kind === "ridge" ? score : sigmoid(score);
      }
    }
  }
  return q;
}

/** Zero mean and unit variance per feature, so that one penalty fits all; constant features become 0. */
export function standardise(context: Context, rows: number): Context {
  const { width, values } = context;
  if (width > MAX_WIDTH) {
    throw new RollbookError(
      "too-wide",
      { width, limit: MAX_WIDTH },
      `${width} features are too many for a dense model (limit ${MAX_WIDTH}). Hash or select them, or bring predictions.`,
    );
  }
  const out = new Float64Array(values.length);
  for (let column = 0; column < width; column++) {
    let mean = 0;
    for (let i = 0; i < rows; i++) mean += values[i * width + column]!;
    mean /= rows;
    let square = 0;
    for (let i = 0; i < rows; i++) {
      const gap = values[i * width + column]! - mean;
      square += gap * gap;
    }
    const scale = square > 0 ? 1 / Math.sqrt(square / rows) : 0;
    for (let i = 0; i < rows; i++) out[i * width + column] = (values[i * width + column]! - mean) * scale;
  }
  return { width, values: out };
}

export function rowsWhere(column: Int32Array, keep: (value: number) => boolean): Int32Array {
  const rows: number[] = [];
  for (let i = 0; i < column.length; i++) if (keep(column[i]!)) rows.push(i);
  return Int32Array.from(rows);
}

function checkUnitRange(reward: Float64Array): void {
  const row = reward.findIndex((r) => r < 0 || r > 1);
  if (row < 0) return;
  throw new RollbookError(
    "reward-range",
    { row, value: reward[row] },
    `row ${row}: reward ${reward[row]} is outside [0, 1], which a logistic model needs. Use ridge, or rescale.`,
  );
}
