/** The predictions that model-based estimators use: q̂ of the chosen action and the target's expectation of q̂. */
import { RollbookError } from "../../../base/index.ts";
import { type LoggedDecisions, requireCandidates } from "../log/index.ts";

export interface RewardPredictions {
  /** q̂(x, a) of the chosen action. */
  readonly chosen: Float64Array;
  /** Σ_a π_e(a|x)·q̂(x, a). */
  readonly expected: Float64Array;
  /** `expected` before recalibration, for the direct method. Recalibration is for the variance of DR, not for
   *  the level of q̂. */
  readonly direct?: Float64Array;
  /** The predictions are the outcomes themselves, known beforehand: there are no unseen outcomes. */
  readonly isExact?: true;
}

/** Predictions from a full matrix q̂ (rows × K) of any model. The model must not have seen the row it predicts. */
export function predictionsFrom(log: LoggedDecisions, q: Float64Array): RewardPredictions {
  const { count, chosen: actions, target } = requireCandidates(log, "a reward model");
  const rows = log.reward.length;
  if (q.length !== rows * count) {
    throw new RollbookError(
      "column-length",
      { length: q.length, expected: rows * count },
      `the predictions hold ${q.length} values, ${rows} rows of ${count} candidates need ${rows * count}.`,
    );
  }
  const chosen = new Float64Array(rows);
  const expected = new Float64Array(rows);
  for (let i = 0; i < rows; i++) {
    let value = 0;
    for (let a = 0; a < count; a++) value += target[i * count + a]! * q[i * count + a]!;
    expected[i] = value;
    chosen[i] = q[i * count + actions[i]!]!;
  }
  return { chosen, expected };
}
