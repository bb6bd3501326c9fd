/** The tables of a replay store, declared once: name, type, meaning and reference of every column. This module drives
 *  the writer, reader, validator, compaction and docs/reference/replay-format.md. Out: declarations and types. Does not know
 *  files. */
import type { DataType, ValuesOf } from "../zarr/index.ts";

export const SCHEMA_ID = "rollbook.replay";
/** Raised when a reader of the previous version could misread a store. */
export const SCHEMA_VERSION = 1;
/** First release of this package that reads stores of SCHEMA_VERSION; written into every store. */
export const NEEDS = "rollbook 0.1.0";

export interface ColumnSpec {
  readonly dtype: DataType;
  readonly doc: string;
  /** Shape of one row, if it is not a single value. */
  readonly row?: readonly number[];
  /** Holds rows of this table (local to the segment). */
  readonly references?: string;
  /** Holds the first row of a range of this table; the column named by `count` holds its length. */
  readonly starts?: string;
  readonly count?: string;
  /** Holds rows of `dictionary/text`. */
  readonly dictionary?: true;
  /** −1 may stand for a missing value. */
  readonly optional?: true;
  /** One value per candidate of the state, padded with this value to the largest number of candidates. */
  readonly pad?: number;
}

interface TableSpec {
  readonly doc: string;
  /** Name of the first dimension, for xarray. */
  readonly dimension: string;
  readonly columns: Readonly<Record<string, ColumnSpec>>;
}

const digestColumn = <D extends string>(doc: D) => ({ dtype: "uint8", row: [32], doc }) as const;
const flag = <D extends string>(doc: D) => ({ dtype: "bool", doc }) as const;
const integer = <D extends string>(doc: D) => ({ dtype: "int32", doc }) as const;
/** NaN where unknown. */
const real = <D extends string>(doc: D) => ({ dtype: "float64", doc }) as const;
const text = <D extends string>(doc: D) => ({ dtype: "int32", dictionary: true, doc }) as const;
const maybeText = <D extends string>(doc: D) => ({ ...text(doc), optional: true }) as const;
const row = <T extends string>(references: T, doc: string) => ({ dtype: "int32", references, doc }) as const;
const maybeRow = <T extends string>(references: T, doc: string) =>
  ({ ...row(references, doc), optional: true }) as const;
const padded = <C extends ColumnSpec>(pad: number, column: C) => ({ ...column, pad }) as const;

export const TABLES = {
  sources: {
    doc: "Shared contexts: one row per distinct pair of a task and the features a decision saw.",
    dimension: "source",
    columns: {
      key: digestColumn("digest of the other columns of this row; unique in a segment"),
      task: text("id of the task"),
      task_digest: maybeText("digest of the task record"),
      environment: text("environment, ref@version"),
      split: maybeText("split of the task record"),
      data_source: text("real or synthetic"),
      features_start: {
        dtype: "int64",
        starts: "source_features",
        count: "features_length",
        doc: "first row in source_features",
      },
      features_length: integer("number of features"),
    },
  },
  source_features: {
    doc: "The context features of all sources, one after another.",
    dimension: "source_feature",
    columns: { value: { dtype: "float32", doc: "the feature, rounded to float32" } },
  },
  targets: {
    doc: "The meaning of a chain's labels and rewards, and whether they may be trained on.",
    dimension: "target",
    columns: {
      key: digestColumn("digest of the other columns of this row; unique in a segment"),
      config: maybeText("digest of the target config"),
      reward: text("digest of names, weights and scorers of the rewards"),
      valid: flag("labels against this target may be trained on"),
      invalid_reason: maybeText("why not: the ending that says nothing about the policy"),
    },
  },
  chains: {
    doc: "One row per stream of a rollout: a chain of decisions, or of tokens.",
    dimension: "chain",
    columns: {
      rollout: { dtype: "string", doc: "rollout id" },
      content: digestColumn("digest of the sealed rollout content"),
      stream: integer("index of the stream in the rollout; unique with content"),
      level: text("step or token"),
      family: text("policy family"),
      group: maybeText("group of rollouts that share a baseline"),
      source: row("sources", "context of the first decision"),
      target: row("targets", "what its labels measure"),
      ending: text("terminal, truncated:<limit>, failed:<owner> or cancelled"),
      terminal: flag("the episode ended by itself"),
      truncated: flag("the episode was cut; its value goes on"),
      steps_start: { dtype: "int32", starts: "steps", count: "steps_count", doc: "first row in steps" },
      steps_count: integer("number of steps; 0 for token chains"),
      tokens_start: { dtype: "int64", starts: "tokens", count: "tokens_count", doc: "first row in tokens" },
      tokens_count: integer("number of tokens; 0 for step chains"),
      logprob_kind: maybeText("sampling or model; token chains only"),
      tokenizer: maybeText("digest of the tokenizer"),
      final_gain: real("cumulative gain of the last step"),
      final_reward: real("cumulative reward of the last step, or the sum of token rewards"),
    },
  },
  lineage: {
    doc: "One row per chain, in the same order: everything that shaped it, by digest.",
    dimension: "chain",
    columns: {
      chain: row("chains", "the chain; equal to the row itself"),
      policy_id: text("revision id of the first decision"),
      policy: text("digest of that revision"),
      environment: text("environment, ref@version"),
      environment_digest: maybeText("digest of the environment package"),
      reward: text("digest of names, weights and scorers of the rewards"),
      sampling: text("digest of the sampling parameters"),
      candidate_mixture: maybeText("digest of the candidate-mixture config"),
      target: maybeText("digest of the target config"),
      oracle: maybeText("digest of the oracle config"),
      rng: maybeText("digest of the rng state"),
      configs: maybeText("digest of all configs together"),
      assignment: maybeText("digest of the assignment"),
      sample: integer("sample index in the assignment; -1 without one"),
      seed: { dtype: "uint64", doc: "seed of the rollout" },
      reasons_version: integer("version of the reason names when the chain was written"),
    },
  },
  steps: {
    doc: "One row per decision; the steps of a chain stand together. A forked prefix is stored once.",
    dimension: "step",
    columns: {
      chain: row("chains", "the chain it belongs to"),
      index: integer("position in the chain"),
      parent: maybeRow("steps", "the step it continues; -1 for the first"),
      depth: integer("number of steps before it on its path"),
      source: row("sources", "the context the decision saw"),
      policy_id: text("revision id that decided"),
      policy: text("digest of that revision"),
      turn: integer("turn of the rollout"),
      call: integer("model call of the rollout; -1 without one"),
      reason: maybeText("why the policy decided so"),
      candidates_start: {
        dtype: "int32",
        starts: "candidates",
        count: "candidates_count",
        doc: "first row in candidates",
      },
      candidates_count: integer("number of candidates, selectable or not"),
      selectable_count: integer("number of selectable candidates"),
      selected: row("candidates", "the chosen candidate"),
      probability: real("probability of the choice under the final distribution"),
      reward: real("reward of the step; NaN: unlabelled"),
      before: real("error of the state before the choice"),
      after: real("error of the state after it"),
      gain: real("(before - after) / max(error of the root, epsilon)"),
      cumulative_gain: real("sum of gains on the path up to here"),
      cumulative_reward: real("sum of rewards on the path up to here"),
      terminal: flag("the episode ended here by itself"),
      truncated: flag("the path was cut here; its value goes on"),
    },
  },
  candidates: {
    doc: "Every candidate of every step, invalid ones included; those of a step stand together.",
    dimension: "candidate",
    columns: {
      step: row("steps", "the step it was offered in"),
      index: integer("position among the candidates of the step"),
      id: text("candidate id; unique in a step"),
      selectable: flag("the policy was allowed to choose it"),
      labelled: flag("a label is known"),
      trainable: flag("selectable, target valid, labelled and the label finite"),
      selected: flag("it was chosen"),
      probability: real("behaviour probability; NaN: not logged"),
      label: real("supervised value of choosing it; NaN: unlabelled; never filled from another score"),
      diagnostic: real("state-relative score; never a label"),
      reasons: { dtype: "uint64", doc: "bitset of why it may not be chosen; bit i is row i of reasons" },
      provenance: maybeText("where the candidate came from"),
      features_start: {
        dtype: "int64",
        starts: "candidate_features",
        count: "features_length",
        doc: "first row in candidate_features",
      },
      features_length: integer("number of features"),
    },
  },
  candidate_features: {
    doc: "The features of all candidates, one after another.",
    dimension: "candidate_feature",
    columns: { value: { dtype: "float32", doc: "the feature, rounded to float32" } },
  },
  tokens: {
    doc: "The tokens of all token chains, one after another.",
    dimension: "token",
    columns: {
      id: { dtype: "uint32", doc: "token id" },
      logprob: { dtype: "float32", doc: "log-probability, of the kind the chain names" },
      mask: flag("sampled by the policy, not only read"),
      turn: integer("turn of the rollout; -1 unknown"),
      reward: { dtype: "float32", doc: "reward of the token; NaN: unlabelled" },
      policy: maybeText("digest of the revision that sampled it"),
    },
  },
  reasons: {
    doc: "Names of the reason bits, append-only over all segments; row i names bit i.",
    dimension: "reason",
    columns: { name: { dtype: "string", doc: "reason" } },
  },
  dictionary: {
    doc: "The texts that other columns refer to by row.",
    dimension: "text",
    columns: { text: { dtype: "string", doc: "text; unique in a segment" } },
  },
  q_h: {
    doc: "Derived dense view: one row per state (the same rows as steps), padded over candidates.",
    dimension: "state",
    columns: {
      step: row("steps", "the step; equal to the row itself"),
      chain: row("chains", "its chain"),
      source: row("sources", "its context"),
      target: row("targets", "what its labels measure"),
      candidate_count: integer("candidates that are not padding"),
      selected_index: integer("position of the chosen candidate"),
      reward: real("gain or reward, as the return semantics say; NaN: unlabelled"),
      return_to_go: real("discounted sum of rewards from here to the end of the path"),
      discount: real("gamma, and 0 where terminal"),
      terminal: flag("the episode ended here by itself"),
      truncated: flag("the path was cut here; bootstrap beyond it"),
      next_state: maybeRow("steps", "the state that followed (its first continuation); -1: none recorded"),
      candidate: padded(-1, maybeRow("candidates", "row in candidates; -1: padding")),
      selectable: padded(0, flag("mask of selectable candidates")),
      labelled: padded(0, flag("mask of labelled candidates")),
      trainable: padded(0, flag("mask of trainable candidates")),
      selected: padded(0, flag("mask of the chosen candidate")),
      label: padded(Number.NaN, real("labels; NaN: unlabelled or padding")),
      probability: padded(0, real("behaviour probabilities; NaN: not logged; 0: padding")),
    },
  },
} as const satisfies Record<string, TableSpec>;

export type TableName = keyof typeof TABLES;
export type ColumnName<T extends TableName> = keyof (typeof TABLES)[T]["columns"] & string;
type DTypeOf<T extends TableName, C extends ColumnName<T>> = (typeof TABLES)[T]["columns"][C] extends {
  dtype: infer D extends DataType;
}
  ? D
  : never;
/** Typed array (or strings) that holds a column. */
export type ColumnValues<T extends TableName, C extends ColumnName<T>> = ValuesOf[DTypeOf<T, C>];
export type ColumnsOf<T extends TableName, C extends ColumnName<T> = ColumnName<T>> = {
  [K in C]: ColumnValues<T, K>;
};

export const TABLE_NAMES = Object.keys(TABLES) as TableName[];
/** All tables except the derived view. */
export const FACT_TABLES = TABLE_NAMES.filter((name) => name !== "q_h");

export function tableOf(table: TableName): TableSpec {
  return TABLES[table];
}

export function columnsOf<T extends TableName>(table: T): ColumnName<T>[] {
  return Object.keys(TABLES[table].columns) as ColumnName<T>[];
}

export function columnOf<T extends TableName>(table: T, column: ColumnName<T>): ColumnSpec {
  return tableOf(table).columns[column]!;
}

/** Shape of one row of a column, given the largest number of candidates of a state. */
export function rowShape(spec: ColumnSpec, maxCandidates: number): readonly number[] {
  return spec.pad !== undefined ? [Math.max(1, maxCandidates)] : (spec.row ?? []);
}

/** All arrays of a segment, by path. */
export function arrayPaths(): { path: string; table: TableName; column: string; spec: ColumnSpec }[] {
  return TABLE_NAMES.flatMap((table) =>
    Object.entries(tableOf(table).columns).map(([column, spec]) => ({
      path: `${table}/${column}`,
      table,
      column,
      spec,
    })),
  );
}
