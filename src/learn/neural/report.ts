/** What every neural training reports of itself, always: where the rows went, and the checks that find silent failures.
 *  In: rows, curve and checks of a training. Out: a report; an error where the result must not be used. */
import { type Json, plural, RollbookError } from "../../base/index.ts";
import type { Standardisation } from "./dense-batch.ts";
import type { CurvePoint, Fitted } from "./fit.ts";
import type { Transitions } from "./transitions.ts";

export interface RowAccount {
  readonly rows: number;
  /** Of these the loss is made. */
  readonly trained: number;
  readonly heldOut: number;
  /** Rows of chains that lack an outcome. */
  readonly unlabelled: number;
  /** Last rows of chains whose episode went on: their successor is not known. */
  readonly cut: number;
}

export interface TrainingChecks {
  readonly weightsChanged: boolean;
  readonly lossFinite: boolean;
  /** The saved bytes, read back, answer as the weights in memory do: the largest difference of an output. */
  readonly reproduced: number;
  /** Features that never vary in training: they teach nothing. */
  readonly constantFeatures: number;
  readonly features: number;
  /** Every reward (of a clone: every choice) the same: there is nothing to prefer. */
  readonly labelsEqual: boolean;
}

export interface NeuralReport {
  readonly account: RowAccount;
  readonly checks: TrainingChecks;
  readonly curve: readonly CurvePoint[];
  readonly bestStep: number;
  readonly steps: number;
  readonly resumedAt?: number;
  /** In words, where something deserves a look. */
  readonly warnings: readonly string[];
}

/** Of a learner that acts instead of reading a log. */
export interface OnlineReport extends Omit<NeuralReport, "account" | "checks"> {
  readonly checks: Pick<TrainingChecks, "weightsChanged" | "lossFinite" | "reproduced">;
  /** Episodes that ended. */
  readonly episodes: number;
}

/** Outputs in memory and from the file may differ by float32 rounding, no more. */
const SAME_OUTPUT = 1e-3;

export function reportOf(options: {
  readonly account: RowAccount;
  readonly data: Transitions;
  readonly train: Int32Array;
  readonly by: Standardisation;
  readonly fitted: Fitted;
  readonly reproduced: number;
  /** What comes later counts: episodes may differ by their length alone. */
  readonly chained: boolean;
  /** Rows of a step, where the network corrects a linear model. */
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
  if (checks.constantFeatures === checks.features)
    warnings.push("no feature varies: every question looks alike");
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

/** The outputs of such a network begin at 0. */
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
