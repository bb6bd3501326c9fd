/** Reads rollouts of a book for another program: the rows of a sealed batch, or all that the book admits.
 *  In: an open book, a batch or filters, the key of rollouts that must be adjacent. Out: rollouts one at a time. To
 *  order them, memory holds a few hundred bytes per rollout. Messages and tokens are read one rollout at a time. */
import { compareUtf8, type Digest, type Json } from "../../base/index.ts";
import {
  type BatchRow,
  type ExclusionReason,
  inlineContent,
  LedgerPage,
  type Level,
  LossLedger,
  Manifest,
  type ReadBlob,
  RolloutContent,
  RolloutEnvelope,
  readTokenColumns,
  Task,
} from "../../contract/index.ts";
import type {
  HandedRollout,
  HandedTask,
  HandedTokens,
  HandoverBatch,
  TrainerFormat,
} from "../../convert/handover/index.ts";
import type { ReadableBatch } from "../../keep/batch/index.ts";
import { readRecord } from "../../store/index.ts";
import { type OpenBook, readOf } from "../open/index.ts";
import type { AdmittedRollouts } from "../rollouts/index.ts";
import { conversationsOf, readCalls } from "./calls-of.ts";
import { type RevisionsNamed, referredRecords, revisionsNamed } from "./referred-records.ts";

/** Parts of a book that rollouts are read from. */
interface RolloutSource {
  readonly read: ReadBlob;
  readonly revisions: RevisionsNamed;
}

/** `action` is the name of the operation in errors. */
export async function rolloutSource(book: OpenBook, action: string): Promise<RolloutSource> {
  return { read: readOf(book, action), revisions: revisionsNamed(await book.index()) };
}

/** Facts of a rollout before its record is read. */
interface RolloutFacts {
  readonly content: Digest;
  readonly envelope: Digest | undefined;
  readonly rolloutId: string;
  readonly group: string;
  readonly task: string | undefined;
  readonly reward: number | null;
  readonly excluded: ExclusionReason | null;
  /** Index of the token stream to export; undefined if there is none. */
  readonly stream: number | undefined;
  readonly advantage: number | null;
  readonly weightBps: number;
}

/** Failures that are not a result of the policy. All other ledger reasons come from the rules of the batch. */
const FAILURES: ReadonlySet<ExclusionReason> = new Set([
  ...(["failed-task", "failed-provider", "failed-sandbox", "failed-infrastructure", "cancelled"] as const),
  "task-quarantined",
]);

export function handoverBatch(batch: ReadableBatch): HandoverBatch {
  const numbers = new Map(batch.sources.map(({ id, number }) => [id as string, number]));
  return { digest: batch.digest, record: batch.record, numberOf: (revision) => numbers.get(revision) };
}

/** Yields the rows of a batch, and the failures of its groups. */
export async function* rolloutsOfBatch(
  source: RolloutSource,
  batch: ReadableBatch,
  together: TrainerFormat["together"],
): AsyncGenerator<HandedRollout> {
  const { read } = source;
  const facts = await factsOfBatch(read, batch);
  const failures = await failuresOf(read, batch, new Set(facts.map(({ group }) => group)));
  yield* handOver(source, await arranged(read, [...facts, ...failures], together), true);
}

/** Yields every admitted rollout once, even if several of its streams were admitted. */
export async function* rolloutsOfAdmitted(
  source: RolloutSource,
  admitted: readonly AdmittedRollouts[],
  together: TrainerFormat["together"],
): AsyncGenerator<HandedRollout> {
  const rollouts = new Map<Digest, RolloutFacts>();
  for (const { rows, level } of admitted)
    for (const row of rows) {
      const known = rollouts.get(row.content);
      rollouts.set(row.content, {
        ...{ content: row.content, envelope: row.envelope, rolloutId: row.rolloutId },
        ...{ group: row.group ?? row.rolloutId, task: row.task.id, excluded: null, advantage: null },
        // A rollout can have several streams. The first labelled stream gives its reward.
        reward: known?.reward ?? row.reward,
        stream: known?.stream ?? (isToken(level) ? row.stream : undefined),
        weightBps: row.weightBps,
      });
    }
  const ordered = [...rollouts.values()].sort((a, b) => compareUtf8(a.rolloutId, b.rolloutId));
  yield* handOver(source, await arranged(source.read, ordered, together), false);
}

function isToken(level: Level): boolean {
  return level === "token";
}

async function factsOfBatch(read: ReadBlob, batch: ReadableBatch): Promise<RolloutFacts[]> {
  const manifest = await readRecord(read, Manifest, batch.record.manifest);
  const envelopes = new Map(manifest.artifacts.map(({ content, envelope }) => [content, envelope]));
  const facts: RolloutFacts[] = [];
  const add = (row: BatchRow, advantage: number | null) => {
    facts.push({ ...factsOfRow(row, batch.level), envelope: envelopes.get(row.content), advantage });
  };
  if (batch.level === "step")
    for await (const { rows } of batch.shards()) for (const row of rows) add(row, null);
  else
    for await (const shard of batch.shards()) {
      const { advantages, mask } = await shard.pick("advantages", "mask");
      for (const row of shard.rows) {
        const [from, to] = [row.start, row.start + row.length];
        add(row, sameAdvantage(advantages.subarray(from, to), mask.subarray(from, to)));
      }
    }
  return facts;
}

function factsOfRow(row: BatchRow, level: Level): Omit<RolloutFacts, "envelope" | "advantage"> {
  const { content, rolloutId, reward, stream, weightBps } = row;
  return {
    ...{ content, rolloutId, group: row.group ?? rolloutId, task: undefined, reward },
    ...{ excluded: null, weightBps, stream: isToken(level) ? stream : undefined },
  };
}

/** Advantage that all sampled tokens share, or null if they differ. */
function sameAdvantage(advantages: Float32Array, mask: Uint8Array): number | null {
  let found: number | null = null;
  for (let i = 0; i < mask.length; i++) {
    if (mask[i] !== 1) continue;
    if (found !== null && advantages[i] !== found) return null;
    found = advantages[i]!;
  }
  return found;
}

/** Failures in the ledger whose group is in the batch, or which have a stream of the batch's family and level. */
async function failuresOf(
  read: ReadBlob,
  { record, level }: ReadableBatch,
  groups: ReadonlySet<string>,
): Promise<RolloutFacts[]> {
  const ledger = await readRecord(read, LossLedger, record.ledger);
  const found = new Map<Digest, RolloutFacts>();
  for (const page of ledger.pages)
    for (const { content, reason } of (await readRecord(read, LedgerPage, page)).entries) {
      if (!FAILURES.has(reason)) continue;
      const { rolloutId, group, streams, task } = await readRecord(read, RolloutContent, content);
      const own = streams.findIndex(
        (each) => each.level === level && each.family === record.selection.family,
      );
      if (group === undefined || (own < 0 && !groups.has(group))) continue;
      found.set(content, {
        ...{ content, envelope: undefined, rolloutId, group, task: task.id, reward: null, excluded: reason },
        ...{ stream: isToken(level) && own >= 0 ? own : undefined, advantage: null, weightBps: 10_000 },
      });
    }
  return [...found.values()].sort((a, b) => compareUtf8(a.rolloutId, b.rolloutId));
}

/** Puts rollouts of one group (or task) next to each other. Groups keep the order of their first rollouts. */
async function arranged(
  read: ReadBlob,
  facts: readonly RolloutFacts[],
  together: TrainerFormat["together"],
): Promise<RolloutFacts[]> {
  const groups = new Map<string, RolloutFacts[]>();
  for (const each of facts) {
    const task = async () => each.task ?? (await readRecord(read, RolloutContent, each.content)).task.id;
    const key = together === "group" ? each.group : await task();
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [each]);
    else group.push(each);
  }
  return [...groups.values()].flat();
}

async function* handOver(
  source: RolloutSource,
  facts: readonly RolloutFacts[],
  batched: boolean,
): AsyncGenerator<HandedRollout> {
  const { read } = source;
  for (const { content, envelope, reward, excluded, ...rest } of facts) {
    const record = await readRecord(read, RolloutContent, content);
    const scores = record.scores.filter(({ weight }) => weight !== 0);
    const calls = await readCalls(read, record);
    yield {
      ...{ content, envelope, record, excluded, calls },
      times: envelope === undefined ? undefined : await readRecord(read, RolloutEnvelope, envelope),
      task: await taskOf(read, record),
      // A row of a batch keeps the reward of the batch. Without a batch, the weighted scores replace the reward, if any
      // exist.
      reward: batched || scores.length === 0 ? reward : weighted(scores),
      conversations: conversationsOf(calls),
      tokens:
        rest.stream === undefined ? null : await tokensOf(read, record, { ...rest, stream: rest.stream }),
      records: () => referredRecords(source, record),
      whole: () => inlineContent(read, content) as Promise<Record<string, Json>>,
    };
  }
}

function weighted(scores: RolloutContent["scores"]): number {
  return scores.reduce((sum, { value, weight }) => sum + value * weight, 0);
}

async function taskOf(read: ReadBlob, { task }: RolloutContent): Promise<HandedTask> {
  // A rollout imported from another book may come without the record of its task.
  if (task.digest === undefined || (await read(task.digest)) === undefined) return { ...task };
  const { prompt, payload, label } = await readRecord(read, Task, task.digest);
  return { id: task.id, digest: task.digest, payload, prompt, label } as HandedTask;
}

async function tokensOf(
  read: ReadBlob,
  record: RolloutContent,
  { stream, advantage, weightBps }: { stream: number; advantage: number | null; weightBps: number },
): Promise<HandedTokens | null> {
  const item = record.streams[stream]!;
  if (item.level !== "token") return null;
  const { advantages: claimed, ...columns } = await readTokenColumns(read, item);
  const { family, logprobKind, tokenizer, segments } = item;
  return {
    ...{ stream, family, logprobKind, tokenizer, segments, advantage, weightBps },
    claimed,
    ...columns,
  };
}
