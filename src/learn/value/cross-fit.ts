/** A linear model of rewards from all features of a question, for a learner that corrects it.
 *  In: decisions, the outcome of each, groups that stay together. Out: the model as parts of a checkpoint, and for
 *  every row a prediction by a model that has not seen its group. A correction must learn the errors on new questions,
 *  not those of the fit. Cross-validation chooses ridge or logistic, and the penalty. Deterministic. */
import type { PolicyModel, Tensors, ValueSpec } from "../../policy/index.ts";
import type { DecisionRow } from "../rows/index.ts";
import { chooseLinear } from "./choose-learners.ts";
import { dealFolds, holdOut } from "./cross-validate.ts";
import { deriveValueSpec, encodeRows } from "./fit-columns.ts";
import { predictorOf, type RowPredictor, rangeOf, type ValueData } from "./learners.ts";
import { columnTensors, linearTensors } from "./value-tensors.ts";

export interface CrossFitted {
  readonly spec: ValueSpec;
  readonly tensors: Tensors;
  readonly settings: PolicyModel["settings"];
  /** Rows × candidates, each predicted by a model that has not seen the row's group. */
  readonly unseen: Float64Array;
  /** Predictions of the model of all rows. */
  readonly predict: RowPredictor;
}

/** Row r chose candidate `action[r]` of `arms` and earned `reward[r]`. */
export interface ChosenOutcomes {
  readonly action: Int32Array;
  readonly reward: ArrayLike<number>;
  readonly arms: number;
  readonly groups: readonly string[];
}

const FOLDS = 4;
/** At this score the logistic function is 0 in float32. */
const LEAST_SCORE = -40;

export function crossFitLinear(
  items: readonly DecisionRow[],
  { action, reward, arms, groups }: ChosenOutcomes,
  seed: bigint,
): CrossFitted {
  const encoded = encodeRows(items, deriveValueSpec(items));
  const all = Int32Array.from(items.keys());
  const data: ValueData = {
    ...{ rows: encoded.rows, arms },
    outcomes: {
      ...{ start: Int32Array.from({ length: items.length + 1 }, (_, r) => r), arm: action, full: false },
      target: Float64Array.from(reward),
      weight: new Float64Array(items.length).fill(1),
    },
  };
  const learner = chooseLinear(data, groups, seed);
  const folds = dealFolds(groups, { count: FOLDS, most: Number.POSITIVE_INFINITY, seed });
  const [held] = holdOut(data, folds, [learner]);
  const { predict, fitted } = predictorOf(data, learner, { picked: all });
  const range = rangeOf(data.outcomes.target);
  // A candidate that was never chosen has no outcome: it gets the lowest observed reward.
  const chosen = new Set(action);
  for (let a = 0; a < arms; a++) {
    if (chosen.has(a)) continue;
    fitted!.bias[a] = learner.kind === "ridge" ? range.low : LEAST_SCORE;
    for (let at = a; at < held!.predictions.length; at += arms) held!.predictions[at] = range.low;
  }
  return {
    ...{ spec: encoded.spec, unseen: held!.predictions, predict },
    tensors: { ...columnTensors(encoded), ...linearTensors(learner.kind, data, fitted!) },
    settings: learner.kind === "ridge" ? {} : { ...range, logistic_share: 1 },
  };
}
