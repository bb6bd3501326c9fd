/** Checks that find silent failures of a training without a learning curve: of bandits, clones and value policies.
 *  In: a model, its training rows. Out: the number of rows by use, and the results of the checks; an error if the model
 *  must not be used. Trains nothing. */
import { type Json, RollbookError } from "../../base/index.ts";
import { answerOf, contextReader, decodeModel, encodeModel, type PolicyModel } from "../../policy/index.ts";
import type { TrainingChecks } from "../neural/index.ts";
import { NO_FEATURE_VARIES, type OutcomeRow } from "../rows/index.ts";

export interface CheckedModel {
  /** `trained`: rows in the loss; `unlabelled`: rows without an outcome. */
  readonly account: { readonly rows: number; readonly trained: number; readonly unlabelled: number };
  readonly checks: TrainingChecks;
  /** Sentences for the user; empty if all is well. */
  readonly warnings: readonly string[];
}

/** Number of rows that the read-back compares. */
const COMPARED = 64;
/** Names of learned tensors. The other tensors describe features and rows. */
const LEARNED = /(^|_)(weights|bias|sums|means|target)$/;

export function checkModel(model: PolicyModel, rows: readonly OutcomeRow[]): CheckedModel {
  const learned = Object.entries(model.tensors).filter(([name]) => LEARNED.test(name));
  const labels = rows.map((row) => labelsOf(model, row));
  const trained = labels.filter((each) => each.length > 0).length;
  const flat = labels.flat();
  const checks: TrainingChecks = {
    weightsChanged: learned.some(([, { data }]) => data.some((value) => Number(value) !== 0)),
    lossFinite: learned.every(([, { data }]) => data.every((value) => Number.isFinite(Number(value)))),
    reproduced: readBackError(model, rows),
    ...countFeatures(model, rows),
    labelsEqual: flat.every((label) => label === flat[0]),
  };
  if (!checks.lossFinite)
    throw unusable("a weight is not finite", checks, "Rescale the rewards and features");
  if (checks.reproduced !== 0)
    throw unusable(
      `the saved policy differs from the trained one by ${checks.reproduced}`,
      checks,
      "Report a defect",
    );
  return {
    account: { rows: rows.length, trained, unlabelled: rows.length - trained },
    checks,
    warnings: warningsOf(checks),
  };
}

/** The labels of a row: its choice for a clone, its outcomes for the other kinds. */
function labelsOf({ kind }: PolicyModel, { candidates, chosen, reward }: OutcomeRow): (string | number)[] {
  if (kind === "softmax-linear") return [candidates[chosen]!.id];
  const outcomes = candidates.flatMap(({ outcome }) => (outcome === undefined ? [] : [outcome.reward]));
  return outcomes.length > 0 ? outcomes : reward === null ? [] : [reward];
}

function readBackError(model: PolicyModel, rows: readonly OutcomeRow[]): number {
  const [own, stored] = [answerOf(model), answerOf(decodeModel(encodeModel(model), "the trained model"))];
  let worst = 0;
  for (const { context, candidates } of rows.slice(0, COMPARED)) {
    const [a, b] = [own(context, candidates), stored(context, candidates)];
    a.probabilities.forEach((each, c) => {
      worst = Math.max(worst, Math.abs(each - b.probabilities[c]!));
    });
  }
  return worst;
}

/** Zero for a policy that reads no features. */
function countFeatures(
  model: PolicyModel,
  rows: readonly OutcomeRow[],
): Pick<TrainingChecks, "features" | "constantFeatures"> {
  const reader = contextReader(model);
  if (reader === undefined) return { features: 0, constantFeatures: 0 };
  const [first, seen] = [new Float64Array(reader.size), new Int32Array(reader.size)];
  const varies = new Uint8Array(reader.size);
  for (const { context } of rows) {
    const { indices, values, count } = reader.context(context);
    for (let e = 0; e < count; e++) {
      const at = indices[e]!;
      if (seen[at] === 0) first[at] = values[e]!;
      else if (first[at] !== values[e]) varies[at] = 1;
      seen[at] = seen[at]! + 1;
    }
  }
  const isConstant = (_: number, at: number) =>
    varies[at] === 0 && (seen[at] === 0 || seen[at] === rows.length || first[at] === 0);
  return { features: reader.size, constantFeatures: first.filter(isConstant).length };
}

function warningsOf({ labelsEqual, weightsChanged, features, constantFeatures }: TrainingChecks): string[] {
  return [
    ...(labelsEqual ? ["every reward is the same: the policy has nothing to prefer"] : []),
    ...(weightsChanged || labelsEqual ? [] : ["no weight differs from 0: the policy prefers nothing"]),
    ...(features > 0 && constantFeatures === features ? [NO_FEATURE_VARIES] : []),
  ];
}

function unusable(what: string, checks: TrainingChecks, remedy: string): RollbookError {
  return new RollbookError("training-failed", { ...checks } as Record<string, Json>, `${what}. ${remedy}.`);
}
