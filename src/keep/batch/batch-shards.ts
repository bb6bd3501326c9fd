/** Reads the shards of a batch, one at a time. In: the batch record. Out: rows and flat columns, checked. The store
 *  checks digests; this module checks lengths, indexes and finite numbers. Holds one shard at a time. */
import { type Column, type ColumnOf, type Digest, firstNonFinite } from "../../base/index.ts";
import {
  type BatchRow,
  BatchShard,
  type ColumnRef,
  type ReadBlob,
  readColumn,
  refuse,
  type TrainerBatch,
} from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";

/** One value per token of the shard. */
export interface TokenShardColumns {
  readonly ids: ColumnOf["u32"];
  readonly logprobs: ColumnOf["f32"];
  /** 1: sampled by the policy, 0: only read by it. */
  readonly mask: ColumnOf["u8"];
  readonly turns: ColumnOf["u32"];
  readonly rewards: ColumnOf["f32"];
  readonly advantages: ColumnOf["f32"];
}

/** One value per step; the candidate columns hold `candidateCounts[i]` values for step i. */
export interface StepShardColumns {
  readonly chosen: ColumnOf["u32"];
  readonly probability: ColumnOf["f64"];
  readonly rewards: ColumnOf["f64"];
  readonly advantages: ColumnOf["f64"];
  readonly candidateCounts: ColumnOf["u32"];
  /** Indexes into `candidates` of the shard. */
  readonly candidateIds: ColumnOf["u32"];
  /** NaN: not logged. */
  readonly candidateProbability: ColumnOf["f64"];
  readonly candidateSelectable: ColumnOf["u8"];
}

export interface TokenShard {
  readonly rows: readonly BatchRow[];
  columns(): Promise<TokenShardColumns>;
  /** Reads some columns only: a shard with all columns is tens of megabytes. */
  pick<Name extends keyof TokenShardColumns>(
    ...names: readonly Name[]
  ): Promise<Pick<TokenShardColumns, Name>>;
}

export interface StepShard {
  readonly rows: readonly BatchRow[];
  /** Names of candidates, once each. */
  readonly candidates: readonly string[];
  /** Number of candidates over all steps. */
  readonly candidateCount: number;
  columns(): Promise<StepShardColumns>;
}

type ShardRefs<L extends "token" | "step"> = Extract<BatchShard["data"], { level: L }>["columns"];

export async function* tokenShards(read: ReadBlob, batch: TrainerBatch): AsyncGenerator<TokenShard> {
  for (const summary of batch.shards) {
    const { rows, data } = await readShard(read, batch, summary);
    if (data.level !== "token") throw wrongLevel(summary.digest, "token", data.level);
    const { columns } = data;
    yield {
      rows,
      columns: () => readTokens(read, columns, summary.digest),
      pick: (...names) =>
        readTokens(read, Object.fromEntries(names.map((name) => [name, columns[name]])), summary.digest),
    };
  }
}

export async function* stepShards(read: ReadBlob, batch: TrainerBatch): AsyncGenerator<StepShard> {
  for (const summary of batch.shards) {
    const { rows, data } = await readShard(read, batch, summary);
    if (data.level !== "step") throw wrongLevel(summary.digest, "step", data.level);
    yield {
      rows,
      candidates: data.candidates,
      candidateCount: data.columns.candidateIds.length,
      columns: () => readSteps(read, data.columns, { shard: summary.digest, names: data.candidates.length }),
    };
  }
}

async function readShard(
  read: ReadBlob,
  batch: TrainerBatch,
  summary: TrainerBatch["shards"][number],
): Promise<BatchShard> {
  const shard = await readRecord(read, BatchShard, summary.digest);
  const bad = (message: string) =>
    refuse("bad-record", { shard: summary.digest }, `shard ${summary.digest} ${message}`);
  const samples = shard.rows.reduce((sum, row) => sum + row.samples, 0);
  if (shard.rows.length !== summary.rows || samples !== summary.samples)
    throw bad(
      `holds ${shard.rows.length} rows with ${samples} samples, the batch says ${summary.rows} with ${summary.samples}.`,
    );
  for (const { rolloutId, segments } of shard.rows) {
    for (const [, , source] of segments) {
      if (source >= batch.bySource.length)
        throw bad(`names source ${source} in ${rolloutId}, the batch has ${batch.bySource.length}.`);
    }
  }
  return shard;
}

/** Reads and checks the given columns. */
async function readTokens(read: ReadBlob, columns: Readonly<Record<string, ColumnRef>>, shard: Digest) {
  const values = (await readColumns(read, columns)) as unknown as TokenShardColumns;
  for (const name of ["logprobs", "rewards", "advantages"] as const)
    if (Object.hasOwn(values, name)) requireFinite(values[name], name, shard);
  return values;
}

async function readSteps(read: ReadBlob, columns: ShardRefs<"step">, at: { shard: Digest; names: number }) {
  const values = (await readColumns(read, columns)) as unknown as StepShardColumns;
  for (const name of ["probability", "rewards", "advantages"] as const)
    requireFinite(values[name], name, at.shard);
  checkCandidates(values, at);
  return values;
}

async function readColumns(
  read: ReadBlob,
  columns: Readonly<Record<string, ColumnRef>>,
): Promise<Record<string, Column>> {
  const values: Record<string, Column> = {};
  for (const [name, column] of Object.entries(columns)) values[name] = await readColumn(read, column, name);
  return values;
}

function checkCandidates(values: StepShardColumns, { shard, names }: { shard: Digest; names: number }): void {
  const bad = (column: string, message: string) =>
    refuse("bad-record", { shard, column }, `column ${column} of shard ${shard} ${message}`);
  let total = 0;
  for (const [i, count] of values.candidateCounts.entries()) {
    if (values.chosen[i]! >= count)
      throw bad("chosen", `chose ${values.chosen[i]} of ${count} at step ${i}.`);
    total += count;
  }
  if (total !== values.candidateIds.length)
    throw refuse(
      "length-mismatch",
      { shard, expected: total, actual: values.candidateIds.length },
      `shard ${shard} counts ${total} candidates and has ${values.candidateIds.length}.`,
    );
  const unknown = values.candidateIds.find((id) => id >= names);
  if (unknown !== undefined)
    throw bad("candidateIds", `names candidate ${unknown}, the shard has ${names} names.`);
  const wrong = values.candidateProbability.find((p) => p < 0 || p > 1);
  if (wrong !== undefined) throw bad("candidateProbability", `holds ${wrong}, which is not a probability.`);
}

function requireFinite(values: Float32Array | Float64Array, column: string, shard: Digest): void {
  const at = firstNonFinite(values);
  if (at < 0) return;
  throw refuse(
    "non-finite-number",
    { shard, column, index: at },
    `column ${column} of shard ${shard} holds ${values[at]} at ${at}. Assemble the batch again.`,
  );
}

function wrongLevel(shard: Digest, expected: string, actual: string): Error {
  return refuse(
    "bad-record",
    { shard, expected, actual },
    `shard ${shard} holds ${actual} rows, its batch selects ${expected} rows.`,
  );
}
