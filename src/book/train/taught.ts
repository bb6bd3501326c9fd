/** A model with what it was learned from, before it becomes a checkpoint. */
import { compareUtf8, type Digest } from "../../base/index.ts";
import {
  checkModel,
  type DecisionRow,
  fitStaticTable,
  type LoggedRow,
  withBaseline,
} from "../../learn/index.ts";
import { type PolicyModel, type TrainingDataset, withUsualRequest } from "../../policy/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import type { Learned } from "./learners.ts";

export interface Taught extends Learned {
  readonly data: Digest;
  readonly batches: readonly Digest[];
  readonly datasets: readonly TrainingDataset[];
  /** Units learned from. */
  readonly units: readonly string[];
  readonly rows: number;
  readonly heldBack: number;
  readonly added?: number;
  /** Of a book: what was admitted, and the ledger of the rest. */
  readonly admitted?: AdmittedRollouts;
  /** The most that any decision could choose among; undefined where rows are not read again. */
  readonly mostCandidates?: number;
  /** The least probability of a choice among the rows; null where none is known. */
  readonly leastTaught: number | null;
  /** Worth of a reward one decision later; undefined where every rollout has one decision. */
  readonly returnDiscount?: number | undefined;
}

/** The model with what an average request is to it. By id: the order in which rows came must not change the model. */
export function withUsual(model: PolicyModel, rows: readonly DecisionRow[]): PolicyModel {
  const ordered = [...rows].sort((a, b) => compareUtf8(a.id, b.id));
  return withUsualRequest(
    model,
    ordered.map(({ context }) => context),
  );
}

/** The model with what a person could have written from `rows`: without outcomes there is no such table. */
export function withTable(model: PolicyModel, rows: readonly DecisionRow[]): PolicyModel {
  return rows.some((row) => row.reward !== null) ? withBaseline(model, fitStaticTable({ rows })) : model;
}

/** A learner with a learning curve has checked itself. */
export function checkedReport(
  report: object | undefined,
  model: PolicyModel,
  rows: readonly LoggedRow[],
): object {
  return report !== undefined && "checks" in report ? report : { ...report, ...checkModel(model, rows) };
}
