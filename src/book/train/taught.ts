/** A trained model with its training data, before it becomes a checkpoint. */
import { compareUtf8, type Digest } from "../../base/index.ts";
import {
  checkModel,
  type DecisionRow,
  fitStaticTable,
  type LoggedRow,
  type NeuralReport,
  NO_FEATURE_VARIES,
  withBaseline,
} from "../../learn/index.ts";
import { type PolicyModel, type TrainingDataset, withUsualRequest } from "../../policy/index.ts";
import type { DecisionSource } from "../decisions/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import type { Learned } from "./learners.ts";

export interface Taught extends Learned {
  readonly data: Digest;
  readonly batches: readonly Digest[];
  readonly datasets: readonly TrainingDataset[];
  /** Units in the training rows. */
  readonly units: readonly string[];
  readonly rows: number;
  readonly heldBack: number;
  readonly added?: number;
  /** Admitted rollouts, and the ledger of the others; set only if the rows came from a book. */
  readonly admitted?: AdmittedRollouts;
  /** Largest number of candidates of a decision; undefined if rows are not read again. */
  readonly mostCandidates?: number;
  /** Lowest probability of a choice among the rows; null if none is known. */
  readonly leastTaught: number | null;
  /** Discount per decision of a later reward; undefined if every rollout has one decision. */
  readonly returnDiscount?: number | undefined;
}

/** Adds the average request to the model. Rows are sorted by id, so that their order does not change the model. */
export function withUsual(model: PolicyModel, rows: readonly DecisionRow[]): PolicyModel {
  const ordered = [...rows].sort((a, b) => compareUtf8(a.id, b.id));
  return withUsualRequest(
    model,
    ordered.map(({ context }) => context),
  );
}

/** Adds the static table that a person could have written from `rows`. Without outcomes there is no such table. */
export function withTable(model: PolicyModel, rows: readonly DecisionRow[]): PolicyModel {
  return rows.some((row) => row.reward !== null) ? withBaseline(model, fitStaticTable({ rows })) : model;
}

/** A learner with a learning curve reports its own checks. */
export function checkedReport(
  report: object | undefined,
  model: PolicyModel,
  rows: readonly LoggedRow[],
): object {
  return report !== undefined && "checks" in report ? report : { ...report, ...checkModel(model, rows) };
}

/** Adds the next step to the warning that no feature varies. */
export function withFeatureRemedy(report: object | undefined, source: DecisionSource): object | undefined {
  if (report === undefined || !("warnings" in report)) return report;
  const { warnings } = report as Pick<NeuralReport, "warnings">;
  const remedy =
    "replay" in source
      ? "A replay store has no prompts: train from the book, or with --data"
      : "data" in source
        ? "Give the rows prompts, or fields that differ"
        : "A rollout without model calls has no prompt: record its calls through a gateway";
  return {
    ...report,
    warnings: warnings.map((each) => (each === NO_FEATURE_VARIES ? `${each}. ${remedy}` : each)),
  };
}
