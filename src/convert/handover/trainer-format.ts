/** The interface of a format for rollouts. In: rollouts, adjacent if they share a group (or task).
 *  Out: rows of JSON values. A format checks the requirements of its reader before it yields a row. */
import type { Digest } from "../../base/index.ts";
import type { TrainerBatch } from "../../contract/index.ts";
import type { ParquetColumn } from "../parquet/index.ts";
import type { HandedRollout } from "./handed-rollout.ts";
import type { LossTally, RolloutPart } from "./loss-tally.ts";

export interface HandoverBatch {
  readonly digest: Digest;
  readonly record: TrainerBatch;
  /** The number of a revision, if its record has one. */
  numberOf(revision: string): bigint | undefined;
}

export interface HandoverOptions {
  /** Handling of groups with different sizes (default: refuse). */
  readonly uneven?: "refuse" | "keep" | undefined;
  /** Handling of failures outside the baseline: marked if the format has a mark (default), or left out. */
  readonly failures?: "mark" | "omit" | undefined;
  /** KTO: the minimum reward of a desirable completion. */
  readonly threshold?: number | undefined;
  /** DPO: the minimum difference of the two rewards. */
  readonly minGap?: number | undefined;
}

export interface HandoverContext {
  readonly batch: HandoverBatch | null;
  readonly losses: LossTally;
  readonly options: HandoverOptions;
  warn(message: string): void;
}

export interface TrainerFormat<Row extends object = object> {
  /** `tokens`: rows of a sealed token batch. `rollouts`: such rows, or any admitted rollouts. */
  readonly from: "tokens" | "rollouts";
  /** Rollouts with the same group or task are adjacent. */
  readonly together: "group" | "task";
  /** The parts of a rollout that a row holds. Other parts are counted as lost. */
  readonly carried: readonly RolloutPart[];
  rows(rollouts: AsyncIterable<HandedRollout>, context: HandoverContext): AsyncIterable<Row>;
  /** Present: the file is Parquet. Absent: JSON Lines. */
  readonly columns?: readonly ParquetColumn<Row>[];
}
