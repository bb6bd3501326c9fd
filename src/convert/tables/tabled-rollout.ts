/** The input of the tables, and the interface of a table: its columns, and the rows of one rollout. */
import type { Digest } from "../../base/index.ts";
import type { Level, ReadBlob, RolloutContent, RolloutEnvelope } from "../../contract/index.ts";
import type { BookColumn } from "./table-column.ts";

export const BOOK_TABLES = ["rollouts", "calls", "decisions"] as const;
export type BookTableName = (typeof BOOK_TABLES)[number];

export const TABLE_FORMATS = ["parquet", "arrow"] as const;
export type TableFormat = (typeof TABLE_FORMATS)[number];

export interface TabledRollout {
  /** The fields that `artifact ls` shows. */
  readonly listed: {
    /** Digest of the content. */
    readonly content: Digest;
    readonly envelopes: readonly Digest[];
    readonly taskTitle: string | null;
    readonly ending: string;
    readonly families: readonly string[];
    readonly levels: readonly Level[];
    readonly models: readonly string[];
    readonly samples: number;
    readonly score: number | null;
    readonly feedback: readonly { readonly name: string; readonly value: number }[];
  };
  readonly content: RolloutContent;
  /** Envelope of the last run. */
  readonly envelope: RolloutEnvelope;
}

export interface BookTable<Item> {
  readonly columns: readonly BookColumn<Item>[];
  itemsOf(rollout: TabledRollout, read: ReadBlob): AsyncIterable<Item>;
}

export interface TableRequest {
  readonly table: BookTableName;
  readonly format: TableFormat;
  /** An unused path. */
  readonly out: string;
  readonly rollouts: AsyncIterable<TabledRollout>;
  readonly read: ReadBlob;
  /** Writes only decisions of this policy family. */
  readonly family?: string | undefined;
}
