/** Cross-fitted reward model: one ridge regression per action, shrunk towards a pooled one.
 *  In: a log with candidates and context. Out: out-of-fold predictions. Deterministic given the rng.
 *  An action that a fold never saw gets the pooled model, not a guess of 0. */
import type { Rng } from "../../../base/index.ts";
import { candidatesOf, type LoggedDecisions, unitsOf } from "../log/index.ts";
import { forEachFold } from "./folds.ts";
import { fitRidgePerAction, rowsByAction, scoreRow, standardise } from "./regression.ts";
import { predictionsFrom, type RewardPredictions } from "./reward-predictions.ts";

interface RewardModelOptions {
  readonly rng: Rng;
  readonly folds?: number;
  /** Ridge penalty on standardised features. */
  readonly penalty?: number;
}

export function crossFitRewards(log: LoggedDecisions, options: RewardModelOptions): RewardPredictions {
  return predictionsFrom(log, crossFitMatrix(log, options));
}

/** q̂ as a matrix, rows × K. */
export function crossFitMatrix(log: LoggedDecisions, options: RewardModelOptions): Float64Array {
  const { rng, folds = 3, penalty = 1 } = options;
  const candidates = candidatesOf(log, "a reward model");
  const { count } = candidates;
  const context = standardise(log.context, log.reward.length);
  const q = new Float64Array(log.reward.length * count);
  forEachFold(unitsOf(log), { folds, rng }, (train, held) => {
    const problem = { context, outcome: log.reward, rows: train, penalty };
    const betas = fitRidgePerAction(problem, rowsByAction(train, candidates));
    for (const row of held)
      for (let a = 0; a < count; a++) q[row * count + a] = scoreRow(context, row, betas[a]!);
  });
  return q;
}
