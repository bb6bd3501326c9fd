/** Cuts a trainer batch from a sealed manifest.
 *  In: manifest, target revision, selection, options, seed. Out: the batch record, everything else through `write`.
 *  Pure: same input, same bytes, in any order of arrival. Does not touch files or clocks. */
import { type Digest, given, type Id, rngFrom } from "../../base/index.ts";
import {
  BatchGroups,
  type BatchOptions,
  BatchProofs,
  BatchShard,
  Manifest,
  PolicyRevision,
  PolicyRevisionLineage,
  type ReadBlob,
  refuse,
  type Sealed,
  seal,
  sealLineage,
  TrainerBatch,
} from "../../contract/index.ts";
import { type ReadRecord, readRecord } from "../../store/index.ts";
import {
  type AdmitRequest,
  type Admitted,
  readSealed,
  type SourceReaders,
  selectAdmitted,
  sourceReaders,
  streamKey,
} from "../admit/index.ts";
import { advantageOf, baselineOf, type GroupBaseline } from "./advantage.ts";
import { groupTable, Sums } from "./aggregates.ts";
import { reasonsOf, remedyOf } from "./exclusion-remedy.ts";
import { stepRow, tokenRow } from "./rows.ts";
import { ShardWriter, type StepRowColumns, type TokenRowColumns, type WriteBlob } from "./shard-writer.ts";

export interface AssembleRequest {
  read: ReadBlob;
  write: WriteBlob;
  /** Reads the records of rollouts; a caller with opened records passes its own reader (default: reads with `read`). */
  readRecord?: ReadRecord | undefined;
  /** Digests of records that `read` can find. */
  manifest: Digest;
  target: Digest;
  selection: AdmitRequest["selection"];
  options?: Partial<BatchOptions>;
  seed: bigint;
  /** The command that assembles the batch has sealed verdicts for it; an error says how to undo them. */
  judged?: boolean;
  /** Called after every row of the second pass. */
  onProgress?: (done: number, total: number) => void;
}

const DEFAULTS: BatchOptions = { advantage: "mean-std", requireVerdict: false, shardTokens: 1 << 20 };

export async function assembleBatch(request: AssembleRequest): Promise<Sealed<TrainerBatch>> {
  const { read, write } = request;
  const options: BatchOptions = { ...DEFAULTS, ...request.options };
  const manifest = await readRecord(read, Manifest, request.manifest);
  const target = await readSealed(read, PolicyRevision, request.target);
  const { family } = target.record;
  if (request.selection.family !== undefined && request.selection.family !== family) {
    throw refuse(
      "policy-family-mismatch",
      { expected: request.selection.family, actual: family },
      `the batch selects family ${request.selection.family}, its target ${target.record.id} is of ${family}. Choose a target of the selected family.`,
    );
  }
  const grouped = options.advantage === "mean-std" || options.advantage === "leave-one-out";
  const readers = sourceReaders(read, request.readRecord);
  const { ledger, ...admitted } = await selectAdmitted({
    ...{ read, readers },
    manifest,
    target,
    selection: request.selection,
    options: { ...options, grouped, taken: await rowsOf(read, options.except) },
  });
  if (admitted.rows.length === 0) {
    const { judged } = request;
    const facts = { level: request.selection.level, propensity: options.propensity, judged };
    throw refuse(
      "empty-batch",
      {
        ...{ manifest: request.manifest, considered: manifest.artifacts.length, family },
        reasons: reasonsOf(ledger),
      },
      `none of the ${manifest.artifacts.length} artifacts has a usable ${request.selection.level} stream of ${family}. ${ledger.summary()}${remedyOf(ledger, facts)}`,
    );
  }
  const rows = admitted.rows as BatchableRow[];
  const written = await writeRows({ ...request, readers }, { ...admitted, rows }, options);
  const lineage = sealLineage(target, admitted.sources);
  const groups = seal(BatchGroups, { groups: groupTable(written.groups, written.baselines) });
  const proofs = seal(BatchProofs, {
    proofs: [...admitted.proofs.values()].sort((a, b) => (a.digest < b.digest ? -1 : 1)),
  });
  for (const record of [lineage, groups, proofs]) write(record);
  const batch = seal(TrainerBatch, {
    manifest: request.manifest,
    target: { id: target.record.id, digest: target.record.digest },
    selection: {
      family,
      level: request.selection.level,
      ...(admitted.logprobKind === undefined ? {} : { logprobKind: admitted.logprobKind }),
      ...given({ tokenizer: request.selection.tokenizer }),
    },
    seed: request.seed,
    options: recordedOptions(options, {
      freshness: ledger.freshness,
      choiceOnly: admitted.choiceOnly,
      duplicates: ledger.reasons().some(({ reason }) => reason === "duplicate-rollout"),
    }),
    lineage: lineage.digest,
    totals: written.totals.aggregate(),
    bySource: admitted.sources.map(({ record }, i) => ({
      revision: { id: record.id, digest: record.digest },
      ...written.bySource[i]!.aggregate(),
    })),
    groups: groups.digest,
    groupCount: groups.record.groups.length,
    proofs: proofs.digest,
    proofCount: proofs.record.proofs.length,
    ledger: ledger.seal(request.manifest, write).digest,
    tokens: request.selection.level === "token" ? admitted.rows.reduce((sum, row) => sum + row.length, 0) : 0,
    shards: written.shards,
  });
  write(batch);
  return batch;
}

async function rowsOf(
  read: ReadBlob,
  batches: readonly Digest[] | undefined,
): Promise<ReadonlySet<string> | undefined> {
  if (batches === undefined) return undefined;
  const taken = new Set<string>();
  for (const digest of batches)
    for (const shard of (await readRecord(read, TrainerBatch, digest)).shards)
      for (const row of (await readRecord(read, BatchShard, shard.digest)).rows)
        taken.add(streamKey(row.content, row.stream));
  return taken;
}

/** Records only options that had an effect: the same rows are the same batch, with or without a limit that excluded
 *  nothing. */
function recordedOptions(
  options: BatchOptions,
  used: { freshness: BatchOptions["freshness"]; choiceOnly: boolean; duplicates: boolean },
): BatchOptions {
  const { freshness: _, propensity: __, distinct: ___, ...rest } = options;
  return {
    ...rest,
    ...(used.freshness === undefined ? {} : { freshness: used.freshness }),
    ...(used.choiceOnly ? { propensity: "choice" as const } : {}),
    ...(used.duplicates ? { distinct: distinctIn(options) } : {}),
  };
}

/** Both rules give the same result if nothing is excluded after the choice. */
function distinctIn({ distinct, split, except }: BatchOptions): BatchOptions["distinct"] {
  return split === undefined && except === undefined ? true : distinct;
}

/** Computes the batch again without writing: equal digests prove that it follows from its manifest. */
export async function reassemble(read: ReadBlob, batch: TrainerBatch): Promise<Sealed<TrainerBatch>> {
  const { manifest, selection, options, seed } = batch;
  const lineage = await readRecord(read, PolicyRevisionLineage, batch.lineage);
  return assembleBatch({
    read,
    write: () => {},
    manifest,
    target: lineage.target.record,
    selection,
    options,
    seed,
  });
}

/** Unlabelled streams are excluded here, so every row has a reward. */
type BatchableRow = Admitted["rows"][number] & { reward: number };
type Batchable = Pick<Admitted, "sources"> & { rows: readonly BatchableRow[] };

interface Written {
  shards: ShardWriter["shards"];
  totals: Sums;
  bySource: Sums[];
  groups: Map<Id, Sums>;
  baselines: Map<Id, GroupBaseline>;
}

async function writeRows(
  request: AssembleRequest & { readers: SourceReaders },
  admitted: Batchable,
  options: BatchOptions,
): Promise<Written> {
  const { readers, write, selection, seed } = request;
  const { baselines, ownRewards } = measureGroups(admitted.rows);
  const sourceIndex = new Map(admitted.sources.map(({ record }, i) => [record.id, i]));
  const out: Written = {
    shards: [],
    totals: new Sums(),
    bySource: admitted.sources.map(() => new Sums()),
    groups: new Map(),
    baselines,
  };
  const writer = new ShardWriter({ level: selection.level, shardTokens: options.shardTokens, write });
  const order = rngFrom(seed)
    .split("rows")
    .shuffle([...admitted.rows]);
  for (const [done, row] of order.entries()) {
    const content = await readers.readContent(row.content);
    const stream = content.streams[row.stream]!;
    const by = { method: options.advantage, advantage: rowAdvantage(row, options, ownRewards, baselines) };
    const columns =
      stream.level === "token"
        ? await tokenRow(readers.readColumns, row, stream, by)
        : stepRow(row, stream, by, writer);
    const segments = row.revisions.map((part): [number, number, number] => [
      part.start,
      part.end,
      sourceIndex.get(part.revision.id)!,
    ]);
    addSums(out, row, segments, columns);
    const { content: digest, stream: index, rolloutId, group, weightBps, length, samples, reward } = row;
    writer.add(
      {
        content: digest,
        stream: index,
        rolloutId,
        ...(group === undefined ? {} : { group }),
        weightBps,
        length,
        samples,
        reward,
        segments,
      },
      columns,
    );
    request.onProgress?.(done + 1, order.length);
  }
  writer.close();
  out.shards = writer.shards;
  return out;
}

/** Baselines over rollouts: a rollout split into several rows counts once, with the mean of their rewards. */
function measureGroups(rows: readonly BatchableRow[]): {
  baselines: Map<Id, GroupBaseline>;
  ownRewards: Map<Digest, number>;
} {
  const perRollout = new Map<Digest, { group: Id | undefined; sum: number; rows: number }>();
  for (const row of rows) {
    const known = perRollout.get(row.content) ?? { group: row.group, sum: 0, rows: 0 };
    perRollout.set(row.content, { group: known.group, sum: known.sum + row.reward, rows: known.rows + 1 });
  }
  const ownRewards = new Map([...perRollout].map(([content, each]) => [content, each.sum / each.rows]));
  const members = new Map<Id, number[]>();
  for (const [content, { group }] of perRollout) {
    if (group === undefined) continue;
    const rewards = members.get(group) ?? [];
    rewards.push(ownRewards.get(content)!);
    members.set(group, rewards);
  }
  return {
    ownRewards,
    baselines: new Map([...members].map(([group, rewards]) => [group, baselineOf(rewards)])),
  };
}

function rowAdvantage(
  row: BatchableRow,
  options: BatchOptions,
  ownRewards: Map<Digest, number>,
  baselines: Map<Id, GroupBaseline>,
): number {
  if (options.advantage === "claimed" || options.advantage === "none") return 0;
  return advantageOf(options.advantage, row.reward, ownRewards.get(row.content)!, baselines.get(row.group!)!);
}

function addSums(
  out: Written,
  row: BatchableRow,
  segments: readonly [number, number, number][],
  columns: TokenRowColumns | StepRowColumns,
): void {
  const { rewards, advantages } = columns;
  const mask = "mask" in columns ? columns.mask : undefined;
  const counted = new Set<number>();
  const whole = { rows: 1, samples: 0, rewardSum: 0, advantageSum: 0 };
  for (const [s, [start, , source]] of segments.entries()) {
    // Tokens between two segments (tool output, for example) belong to the segment before; tokens before all segments,
    // to the first.
    const from = s === 0 ? 0 : start;
    const to = segments[s + 1]?.[0] ?? row.length;
    const part = { rows: counted.has(source) ? 0 : 1, samples: 0, rewardSum: 0, advantageSum: 0 };
    counted.add(source);
    for (let i = from; i < to; i++) {
      part.samples += mask === undefined ? 1 : mask[i]!;
      part.rewardSum += rewards[i]!;
      part.advantageSum += advantages[i]!;
    }
    out.bySource[source]!.add(part);
    whole.samples += part.samples;
    whole.rewardSum += part.rewardSum;
    whole.advantageSum += part.advantageSum;
  }
  out.totals.add(whole);
  if (row.group === undefined) return;
  const sums = out.groups.get(row.group) ?? new Sums();
  sums.add(whole);
  out.groups.set(row.group, sums);
}
