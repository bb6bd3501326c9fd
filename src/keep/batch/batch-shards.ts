/** Reads the shards of a batch, one at a time. In: the batch record. Out: rows and flat columns, checked.
 *  A digest is the store's to check; lengths, indexes and finite numbers are checked here. Holds one shard at a time. */
import { type ColumnOf, type Digest, firstNonFinite } from "../../base/index.ts";
import {
  type BatchRow,
  BatchShard,
  type ReadBlob,
  type RecordOf,
  readColumn,
  refuse,
  type TrainerBatch,
} from "../../contract/index.ts";
import { readRecord } from "../admit/index.ts";

/** One value per token of the shard. */
export interface TokenShardColumns {
  readonly ids: ColumnOf["u32"];
  readonly logprobs: ColumnOf["f32"];
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
}

export interface StepShard {
  readonly rows: readonly BatchRow[];
  /** Names of candidates, once each. */
  readonly candidates: readonly string[];
  /** Number of candidates over all steps. */
  readonly candidateCount: number;
  columns(): Promise<StepShardColumns>;
}

type ShardData = RecordOf<typeof BatchShard>["data"];

export async function* tokenShards(read: ReadBlob, batch: TrainerBatch): AsyncGenerator<TokenShard> {
  for (const summary of batch.shards) {
    const { rows, data } = await readShard(read, batch, summary);
    if (data.level !== "token") throw wrongLevel(summary.digest, "token", data.level);
    yield { rows, columns: () => readTokens(read, data, summary.digest) };
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
      columns: () => readSteps(read, data, summary.digest),
    };
  }
}

async function readShard(
  read: ReadBlob,
  batch: TrainerBatch,
  summary: TrainerBatch["shards"][number],
): Promise<RecordOf<typeof BatchShard>> {
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

async function readTokens(
  read: ReadBlob,
  { columns }: Extract<ShardData, { level: "token" }>,
  shard: Digest,
): Promise<TokenShardColumns> {
  const values = {
    ids: await readColumn(read, columns.ids, "ids"),
    logprobs: await readColumn(read, columns.logprobs, "logprobs"),
    mask: await readColumn(read, columns.mask, "mask"),
    turns: await readColumn(read, columns.turns, "turns"),
    rewards: await readColumn(read, columns.rewards, "rewards"),
    advantages: await readColumn(read, columns.advantages, "advantages"),
  };
  for (const name of ["logprobs", "rewards", "advantages"] as const) requireFinite(values[name], name, shard);
  return values;
}

async function readSteps(
  read: ReadBlob,
  { columns, candidates }: Extract<ShardData, { level: "step" }>,
  shard: Digest,
): Promise<StepShardColumns> {
  const values = {
    chosen: await readColumn(read, columns.chosen, "chosen"),
    probability: await readColumn(read, columns.probability, "probability"),
    rewards: await readColumn(read, columns.rewards, "rewards"),
    advantages: await readColumn(read, columns.advantages, "advantages"),
    candidateCounts: await readColumn(read, columns.candidateCounts, "candidateCounts"),
    candidateIds: await readColumn(read, columns.candidateIds, "candidateIds"),
    candidateProbability: await readColumn(read, columns.candidateProbability, "candidateProbability"),
    candidateSelectable: await readColumn(read, columns.candidateSelectable, "candidateSelectable"),
  };
  for (const name of ["probability", "rewards", "advantages"] as const)
    requireFinite(values[name], name, shard);
  checkCandidates(values, candidates.length, shard);
  return values;
}

function checkCandidates(values: StepShardColumns, names: number, shard: Digest): void {
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
  if (wrong !== undefined) throw bad("candidateProbability", `holds ${wrong}, which is no probability.`);
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
