/** The predictions that model-based estimators use: q̂ of the chosen action and the target's expectation of q̂. */
import { RollbookError } from "../../../base/index.ts";
import { type LoggedDecisions, requireCandidates } from "../log/index.ts";

export interface RewardPredictions {
  /** q̂(x, a) of the action that was chosen. */
  readonly chosen: Float64Array;
  /** Σ_a π_e(a|x)·q̂(x, a). */
  readonly expected: Float64Array;
  /** The same before recalibration, which serves the variance of DR and not the level of q̂: for the direct method. */
  readonly direct?: Float64Array;
  /** The outcomes themselves, known beforehand: no outcome is unseen. */
  readonly isExact?: true;
}

/** From a full matrix q̂ (rows × K), made by any model. It must not have seen the row it predicts. */
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
