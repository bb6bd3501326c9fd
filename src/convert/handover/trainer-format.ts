/** The shape of a format that rollouts are written in. In: rollouts, those of one group (or task) one after the other.
 *  Out: rows of JSON values. A format checks what its reader demands of a row before it gives the row away. */
import type { Digest } from "../../base/index.ts";
import type { TrainerBatch } from "../../contract/index.ts";
import type { ParquetColumn } from "../parquet/index.ts";
import type { HandedRollout } from "./handed-rollout.ts";
import type { LossTally, RolloutPart } from "./loss-tally.ts";

export interface HandoverBatch {
  readonly digest: Digest;
  readonly record: TrainerBatch;
  /** The number of a revision, where its record has one. */
  numberOf(revision: string): bigint | undefined;
}

export interface HandoverOptions {
  /** Groups of different sizes (default: refuse). */
  readonly uneven?: "refuse" | "keep" | undefined;
  /** Failures that are outside the baseline: marked where the format has a mark (default), or left out. */
  readonly failures?: "mark" | "omit" | undefined;
  /** KTO: the least reward of a desirable completion. */
  readonly threshold?: number | undefined;
  /** DPO: the least difference of the two rewards. */
  readonly minGap?: number | undefined;
}

export interface HandoverContext {
  readonly batch: HandoverBatch | null;
  readonly losses: LossTally;
  readonly options: HandoverOptions;
  warn(message: string): void;
}

export interface TrainerFormat<Row extends object = object> {
  /** `tokens`: rows of a sealed token batch; `rollouts`: that, or any admitted rollouts. */
  readonly from: "tokens" | "rollouts";
  /** Rollouts with the same one follow each other. */
  readonly together: "group" | "task";
  /** The parts of a rollout that a row holds; the others are counted as lost. */
  readonly carried: readonly RolloutPart[];
  rows(rollouts: AsyncIterable<HandedRollout>, context: HandoverContext): AsyncIterable<Row>;
  /** Present: the file is Parquet; absent: JSON Lines. */
  readonly columns?: readonly ParquetColumn<Row>[];
}
