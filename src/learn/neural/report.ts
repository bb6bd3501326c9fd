/** The report of every neural training: the number of rows by use, and the checks that find silent failures.
 *  In: rows, curve and checks of a training. Out: a report; an error if the result must not be used. */
import { type Json, plural, RollbookError } from "../../base/index.ts";
import { NO_FEATURE_VARIES } from "../rows/index.ts";
import type { Standardisation } from "./dense-batch.ts";
import type { CurvePoint, Fitted } from "./fit.ts";
import type { Transitions } from "./transitions.ts";

export interface RowAccount {
  readonly rows: number;
  /** Number of rows in the loss. */
  readonly trained: number;
  readonly heldOut: number;
  /** Rows of chains that lack an outcome. */
  readonly unlabelled: number;
  /** Last rows of chains whose episode continued: their successor is unknown. */
  readonly cut: number;
}

export interface TrainingChecks {
  readonly weightsChanged: boolean;
  readonly lossFinite: boolean;
  /** Largest difference of an output between the saved bytes, read back, and the weights in memory. */
  readonly reproduced: number;
  /** Number of features that never vary in training. They teach nothing. */
  readonly constantFeatures: number;
  readonly features: number;
  /** True if all rewards (for a clone: all choices) are equal. The policy then has nothing to prefer. */
  readonly labelsEqual: boolean;
}

export interface NeuralReport {
  readonly account: RowAccount;
  readonly checks: TrainingChecks;
  readonly curve: readonly CurvePoint[];
  readonly bestStep: number;
  readonly steps: number;
  readonly resumedAt?: number;
  /** Sentences for the user; empty if all is well. */
  readonly warnings: readonly string[];
}

/** Report of a learner that acts instead of reading a log. */
export interface OnlineReport extends Omit<NeuralReport, "account" | "checks"> {
  readonly checks: Pick<TrainingChecks, "weightsChanged" | "lossFinite" | "reproduced">;
  /** Number of episodes that ended. */
  readonly episodes: number;
}

/** Outputs in memory and from the file may differ only by float32 rounding. */
const SAME_OUTPUT = 1e-3;

export function reportOf(options: {
  readonly account: RowAccount;
  readonly data: Transitions;
  readonly train: Int32Array;
  readonly by: Standardisation;
  readonly fitted: Fitted;
  readonly reproduced: number;
  /** True if later rewards count. Episodes may then differ by their length alone. */
  readonly chained: boolean;
  /** Rows per step, if the network corrects a linear model. */
  readonly wideBatch?: number | undefined;
}): NeuralReport {
  const { account, data, train, by, fitted, reproduced, chained, wideBatch } = options;
  const { changed, ...course } = fitted;
  const checks: TrainingChecks = {
    weightsChanged: changed,
    lossFinite: fitted.curve.every(({ loss }) => Number.isFinite(loss)),
    reproduced,
    constantFeatures: by.scale.filter((scale) => scale === 0).length,
    features: by.scale.length,
    labelsEqual: train.every((row) => data.reward[row] === data.reward[train[0]!]),
  };
  if (!checks.weightsChanged) throw unusable("no weight changed in training", checks, "Train for more steps");
  if (!(reproduced <= SAME_OUTPUT))
    throw unusable(
      `the saved policy differs from the trained one by ${reproduced}`,
      checks,
      "Lower the learning rate or report a defect",
    );
  return {
    account,
    checks,
    ...course,
    warnings: [
      ...warningsOf({ account, checks, curve: course.curve, chained }),
      ...(wideBatch === undefined ? [] : shortCorrection(account, { steps: course.steps, batch: wideBatch })),
    ],
  };
}

function warningsOf({
  account,
  checks,
  curve,
  chained,
}: Pick<NeuralReport, "account" | "checks" | "curve"> & { chained: boolean }): string[] {
  const warnings: string[] = [];
  if (checks.labelsEqual && !chained)
    warnings.push("every reward is the same: the policy has nothing to prefer");
  if (checks.constantFeatures === checks.features) warnings.push(NO_FEATURE_VARIES);
  if (account.heldOut === 0) warnings.push("nothing is held out: the curve shows training loss only");
  if (account.cut * 10 > account.rows)
    warnings.push(
      `${account.cut} of ${account.rows} rows end a chain whose episode went on, and teach nothing`,
    );
  const [first, last] = [curve[0]?.loss, curve.at(-1)?.loss];
  if (curve.length > 1 && first !== undefined && last! > 2 * first)
    warnings.push(`the loss rose from ${first.toPrecision(3)} to ${last!.toPrecision(3)}`);
  return warnings;
}

/** Warns if the steps do not reach every row once. The network's correction starts at 0, so it would stay near 0. */
function shortCorrection(
  { trained }: RowAccount,
  { steps, batch }: { steps: number; batch: number },
): string[] {
  return steps * batch >= trained
    ? []
    : [
        `${plural(steps, "step")} of ${plural(batch, "row")} do not reach each of the ${plural(trained, "row")} once: the linear model decides almost alone. Train for at least ${plural(Math.ceil(trained / batch), "step")}`,
      ];
}

function unusable(what: string, checks: TrainingChecks, remedy: string): RollbookError {
  return new RollbookError("training-failed", { ...checks } as Record<string, Json>, `${what}. ${remedy}.`);
}
