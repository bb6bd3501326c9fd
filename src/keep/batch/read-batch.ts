/** Reads the rows of a trainer batch. In: a function that reads blobs, the digest of the batch. Out: the record, its
 *  sources and the rows in batch order, shard by shard: memory is bounded by the largest shard. Does not write. */
import type { Digest, Id } from "../../base/index.ts";
import {
  type BatchRow,
  PolicyRevisionLineage,
  type ReadBlob,
  type RevisionKey,
  refuse,
  TrainerBatch,
} from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import {
  type StepShard,
  type StepShardColumns,
  stepShards,
  type TokenShard,
  type TokenShardColumns,
  tokenShards,
} from "./batch-shards.ts";

/** A source revision of the batch with its drift from the target. */
export type BatchSource = PolicyRevisionLineage["sources"][number];

interface RowFacts {
  /** Digest of the rollout's content, and the index of the stream in it. */
  readonly content: Digest;
  readonly stream: number;
  readonly rolloutId: Id;
  readonly group: Id | undefined;
  readonly weightBps: number;
  readonly samples: number;
  readonly reward: number;
  /** Tokens (or steps) start … end−1 of the row came from this revision. */
  readonly segments: readonly { start: number; end: number; revision: RevisionKey }[];
}

/** One value per token. The arrays are views of the shard: copy values that must outlive the iteration. */
export interface TokenBatchRow extends RowFacts, TokenShardColumns {
  readonly level: "token";
}

interface BatchCandidate {
  readonly id: string;
  /** Null: not logged. */
  readonly probability: number | null;
  readonly selectable: boolean;
}

export interface BatchStep {
  /** Index into `candidates`. */
  readonly chosen: number;
  /** Probability of the choice. */
  readonly probability: number;
  readonly reward: number;
  readonly advantage: number;
  readonly candidates: readonly BatchCandidate[];
}

export interface StepBatchRow extends RowFacts {
  readonly level: "step";
  readonly steps: readonly BatchStep[];
}

interface BatchFacts {
  readonly digest: Digest;
  readonly record: TrainerBatch;
  /** In the order of `record.bySource`, which segments of stored rows index. */
  readonly sources: readonly BatchSource[];
}

interface TokenBatch extends BatchFacts {
  readonly level: "token";
  rows(): AsyncGenerator<TokenBatchRow>;
  /** The same rows as stored: flat columns of many rows. */
  shards(): AsyncGenerator<TokenShard>;
}

interface StepBatch extends BatchFacts {
  readonly level: "step";
  rows(): AsyncGenerator<StepBatchRow>;
  shards(): AsyncGenerator<StepShard>;
}

export type ReadableBatch = TokenBatch | StepBatch;

export async function readBatch(read: ReadBlob, digest: Digest): Promise<ReadableBatch> {
  const record = await readRecord(read, TrainerBatch, digest);
  const lineage = await readRecord(read, PolicyRevisionLineage, record.lineage);
  const facts: BatchFacts = { digest, record, sources: sourcesOf(record, lineage) };
  const { level } = record.selection;
  switch (level) {
    case "token": {
      const shards = () => tokenShards(read, record);
      return { ...facts, level, shards, rows: () => tokenRows(shards(), facts.sources) };
    }
    case "step": {
      const shards = () => stepShards(read, record);
      return { ...facts, level, shards, rows: () => stepRows(shards(), facts.sources) };
    }
    default:
      return level satisfies never;
  }
}

function sourcesOf(batch: TrainerBatch, lineage: PolicyRevisionLineage): BatchSource[] {
  const known = new Map(lineage.sources.map((source) => [source.id, source]));
  return batch.bySource.map(({ revision }) => {
    const source = known.get(revision.id);
    if (source?.digest === revision.digest) return source;
    throw refuse(
      "bad-record",
      { revision: revision.id, lineage: batch.lineage },
      `the batch has samples of ${revision.id} (${revision.digest}), which its lineage ${batch.lineage} does not name.`,
    );
  });
}

async function* tokenRows(
  shards: AsyncGenerator<TokenShard>,
  sources: readonly BatchSource[],
): AsyncGenerator<TokenBatchRow> {
  for await (const shard of shards) {
    const columns = await shard.columns();
    for (const row of shard.rows) yield tokenRow(row, columns, sources);
  }
}

function tokenRow(row: BatchRow, columns: TokenShardColumns, sources: readonly BatchSource[]): TokenBatchRow {
  const [from, to] = [row.start, row.start + row.length];
  return {
    level: "token",
    ...factsOf(row, sources),
    ids: columns.ids.subarray(from, to),
    logprobs: columns.logprobs.subarray(from, to),
    mask: columns.mask.subarray(from, to),
    turns: columns.turns.subarray(from, to),
    rewards: columns.rewards.subarray(from, to),
    advantages: columns.advantages.subarray(from, to),
  };
}

async function* stepRows(
  shards: AsyncGenerator<StepShard>,
  sources: readonly BatchSource[],
): AsyncGenerator<StepBatchRow> {
  for await (const shard of shards) {
    const columns = await shard.columns();
    let candidate = 0;
    for (const row of shard.rows) {
      const steps: BatchStep[] = [];
      for (let i = row.start; i < row.start + row.length; i++) {
        const end = candidate + columns.candidateCounts[i]!;
        steps.push(stepAt(columns, i, candidatesAt(columns, shard.candidates, candidate, end)));
        candidate = end;
      }
      yield { level: "step", ...factsOf(row, sources), steps };
    }
  }
}

function stepAt(columns: StepShardColumns, i: number, candidates: BatchCandidate[]): BatchStep {
  return {
    chosen: columns.chosen[i]!,
    probability: columns.probability[i]!,
    reward: columns.rewards[i]!,
    advantage: columns.advantages[i]!,
    candidates,
  };
}

function candidatesAt(
  columns: StepShardColumns,
  names: readonly string[],
  from: number,
  to: number,
): BatchCandidate[] {
  const found: BatchCandidate[] = [];
  for (let c = from; c < to; c++) {
    const probability = columns.candidateProbability[c]!;
    found.push({
      id: names[columns.candidateIds[c]!]!,
      probability: Number.isNaN(probability) ? null : probability,
      selectable: columns.candidateSelectable[c] === 1,
    });
  }
  return found;
}

function factsOf(row: BatchRow, sources: readonly BatchSource[]): RowFacts {
  const { content, stream, rolloutId, group, weightBps, samples, reward } = row;
  const segments = row.segments.map(([start, end, source]) => {
    const { id, digest } = sources[source]!;
    return { start, end, revision: { id, digest } };
  });
  return { content, stream, rolloutId, group, weightBps, samples, reward, segments };
}
