/** Cross-fitted reward model: the regression with the least error on unseen rows, out of several.
 *  In: a log with candidates and context. Out: out-of-fold predictions. Deterministic given the rng.
 *  Regressions are fitted per action and shrunk towards a pooled one. They are means, ridge with four penalties and,
 *  for two-valued rewards, logistic with two. Predictions are clipped to the range of rewards. The regression of a fold
 *  is chosen by the squared error on the rows of the other folds, so no row chooses the model that predicts it. */
import type { Rng } from "../../../base/index.ts";
import {
  type Candidates,
  type Context,
  type LoggedDecisions,
  requireCandidates,
  unitsOf,
} from "../log/index.ts";
import { forEachFold } from "./folds.ts";
import { chance, fitLogisticModel } from "./logistic.ts";
import { recalibrate } from "./recalibrate.ts";
import {
  type NormalEquations,
  normalEquations,
  rowsByAction,
  scoreRow,
  solveNormalEquations,
  standardise,
} from "./regression.ts";
import { predictionsFrom, type RewardPredictions } from "./reward-predictions.ts";

interface RewardModelOptions {
  readonly rng: Rng;
  readonly folds?: number;
}

const RIDGE_PENALTIES = [1, 10, 100, 1000] as const;
const LOGISTIC_PENALTIES = [1, 10] as const;
/** Beyond this width a factorisation is too expensive to try several. */
const WIDE = 256;

/** Predictions for the log's target, recalibrated so that DR is no worse than SNIPS. */
export function crossFitRewards(log: LoggedDecisions, options: RewardModelOptions): RewardPredictions {
  const predictions = predictionsFrom(log, crossFitMatrix(log, options));
  return recalibrate(log, predictions, { rng: options.rng.split("recalibration") });
}

/** q̂ as a matrix, rows × K. */
export function crossFitMatrix(log: LoggedDecisions, { rng, folds = 3 }: RewardModelOptions): Float64Array {
  const candidates = requireCandidates(log, "a reward model");
  const context = standardise(log.context, log.reward.length);
  const fitted: Fold[] = [];
  const parts = Math.min(folds, unitsOf(log).count);
  forEachFold(unitsOf(log), { folds: parts, rng }, (train, held) => {
    const predictors = predictorsOf({ log, context, candidates, train });
    fitted.push({
      held,
      predictors,
      errors: predictors.map((predict) => errorOn(held, { log, candidates, predict })),
    });
  });
  const { count } = candidates;
  const q = new Float64Array(log.reward.length * count);
  for (const fold of fitted) {
    const predict = fold.predictors[leastError(fitted.filter((each) => each !== fold))]!;
    for (const row of fold.held) for (let a = 0; a < count; a++) q[row * count + a] = predict(row, a);
  }
  return q;
}

type Predictor = (row: number, action: number) => number;

interface Fold {
  readonly held: Int32Array;
  readonly predictors: readonly Predictor[];
  /** Sum of squared errors on the held rows, per predictor. */
  readonly errors: readonly number[];
}

interface Training {
  readonly log: LoggedDecisions;
  readonly context: Context;
  readonly candidates: Candidates;
  readonly train: Int32Array;
}

/** The same kinds in the same order for every fold. The simplest comes first and wins ties. */
function predictorsOf(training: Training): Predictor[] {
  const { log, context, candidates, train } = training;
  const range = log.rewardRange ?? endsOf(log.reward);
  const clip = (value: number) => Math.min(range.high, Math.max(range.low, value));
  const byAction = rowsByAction(train, candidates);
  const means = meansOf(training, byAction);
  const predictors: Predictor[] = [(_, a) => means[a]!];
  if (context.width === 0) return predictors;
  const pooled = normalEquations({ context, outcome: log.reward, rows: train });
  const each = byAction.map((rows) => normalEquations({ context, outcome: log.reward, rows }));
  for (const penalty of context.width > WIDE ? RIDGE_PENALTIES.slice(1, 2) : RIDGE_PENALTIES) {
    const shared = solveNormalEquations(pooled, penalty);
    const betas = each.map((equations, a) =>
      byAction[a]!.length === 0 ? shared : solveNormalEquations(equations, penalty, shared),
    );
    predictors.push((row, a) => clip(scoreRow(context, row, betas[a]!)));
  }
  if (context.width <= WIDE && isTwoValued(log.reward))
    for (const penalty of LOGISTIC_PENALTIES)
      predictors.push(logisticOf(training, { byAction, pooled, each, penalty }));
  return predictors;
}

function logisticOf(
  { log, context, train }: Training,
  fit: {
    byAction: readonly Int32Array[];
    pooled: NormalEquations;
    each: readonly NormalEquations[];
    penalty: number;
  },
): Predictor {
  const { low, high } = endsOf(log.reward);
  const outcome = log.reward.map((reward) => (reward === high ? 1 : 0));
  const { penalty } = fit;
  const shared = fitLogisticModel({ context, outcome, rows: train, penalty, gram: fit.pooled.gram });
  const betas = fit.byAction.map((rows, a) =>
    rows.length === 0
      ? shared
      : fitLogisticModel({ context, outcome, rows, penalty, prior: shared, gram: fit.each[a]!.gram }),
  );
  return (row, a) => low + (high - low) * chance(scoreRow(context, row, betas[a]!));
}

/** Mean rewards by action; the mean of all rows counts as one more row of each action. */
function meansOf({ log, train }: Training, byAction: readonly Int32Array[]): number[] {
  const total = (rows: Int32Array) => rows.reduce((sum, row) => sum + log.reward[row]!, 0);
  const all = total(train) / train.length;
  return byAction.map((rows) => (total(rows) + all) / (rows.length + 1));
}

function errorOn(
  held: Int32Array,
  { log, candidates, predict }: { log: LoggedDecisions; candidates: Candidates; predict: Predictor },
): number {
  let error = 0;
  for (const row of held) {
    const gap = log.reward[row]! - predict(row, candidates.chosen[row]!);
    error += gap * gap;
  }
  return error;
}

function leastError(folds: readonly Fold[]): number {
  const totals = folds[0]!.errors.map((_, k) => folds.reduce((sum, { errors }) => sum + errors[k]!, 0));
  return totals.indexOf(Math.min(...totals));
}

function endsOf(values: Float64Array): { low: number; high: number } {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return { low, high };
}

function isTwoValued(values: Float64Array): boolean {
  const { low, high } = endsOf(values);
  return high > low && values.every((value) => value === low || value === high);
}
