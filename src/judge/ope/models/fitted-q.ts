/** Cross-fitted value model for chains: fitted Q evaluation with one linear model per action.
 *  Repeats  Q ← ridge(r + γ·Σ_a' π_e(a'|s')·Q(s', a'))  once per step of the longest episode, per fold.
 *  The last logged step of an episode has no successor, so values are those of the logged horizon. */
import { type Rng, RollbookError } from "../../../base/index.ts";
import {
  type Candidates,
  type Context,
  type Episodes,
  episodesOf,
  type LoggedDecisions,
  requireCandidates,
  unitsOf,
} from "../log/index.ts";
import { forEachFold } from "./folds.ts";
import { fitRidgePerAction, rowsByAction, scoreRow, standardise } from "./regression.ts";
import { predictionsFrom, type RewardPredictions } from "./reward-predictions.ts";

interface FittedQOptions {
  readonly rng: Rng;
  readonly folds?: number;
  readonly penalty?: number;
  /** Upper limit on sweeps. With fewer sweeps than the horizon, the model looks that many steps ahead. */
  readonly sweeps?: number;
}

export function crossFitQ(log: LoggedDecisions, options: FittedQOptions): RewardPredictions {
  const { rng, folds = 2, penalty = 1, sweeps = 200 } = options;
  const candidates = requireCandidates(log, "fitted Q evaluation");
  if (log.context === undefined) {
    throw new RollbookError(
      "no-context",
      {},
      "fitted Q evaluation needs the features of each state. Add `context`, or use weighted per-decision IS.",
    );
  }
  const rows = log.reward.length;
  const context = standardise(log.context, rows);
  const episodes = episodesOf(log);
  const q = new Float64Array(rows * candidates.count);
  forEachFold(unitsOf(log), { folds, rng }, (train, held) => {
    const betas = sweep({ log, context, candidates, episodes, train, penalty, sweeps });
    for (const row of held)
      for (let a = 0; a < candidates.count; a++)
        q[row * candidates.count + a] = scoreRow(context, row, betas[a]!);
  });
  return predictionsFrom(log, q);
}

interface Sweep {
  readonly log: LoggedDecisions;
  readonly context: Context;
  readonly candidates: Candidates;
  readonly episodes: Episodes;
  readonly train: Int32Array;
  readonly penalty: number;
  readonly sweeps: number;
}

function sweep({ log, context, candidates, episodes, train, penalty, sweeps }: Sweep): Float64Array[] {
  const next = successors(episodes);
  const byAction = rowsByAction(train, candidates);
  const outcome = log.reward.slice();
  let betas: Float64Array[] = [];
  for (let step = 0; step < Math.min(sweeps, episodes.horizon); step++) {
    if (step > 0) {
      for (const row of train) {
        const after = next[row]!;
        const value = after < 0 ? 0 : stateValue(after, betas, context, candidates);
        outcome[row] = log.reward[row]! + episodes.discount * value;
      }
    }
    betas = fitRidgePerAction({ context, outcome, rows: train, penalty }, byAction);
  }
  return betas;
}

function stateValue(
  row: number,
  betas: readonly Float64Array[],
  context: Context,
  { count, target }: Candidates,
): number {
  let value = 0;
  for (let a = 0; a < count; a++) {
    const p = target[row * count + a]!;
    if (p > 0) value += p * scoreRow(context, row, betas[a]!);
  }
  return value;
}

/** The next row of each row in its episode, or −1. */
function successors(episodes: Episodes): Int32Array {
  const next = new Int32Array(episodes.rows.length).fill(-1);
  for (let e = 0; e < episodes.count; e++) {
    for (let at = episodes.start[e]!; at + 1 < episodes.start[e + 1]!; at++)
      next[episodes.rows[at]!] = episodes.rows[at + 1]!;
  }
  return next;
}
