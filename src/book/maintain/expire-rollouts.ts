/** Retention: erases rollouts that ended before a time, with tombstones, as `artifact erase` does for single ones.
 *  In: the directory of a book that this process does not hold open to write, a time. Out: the erased rollouts, and
 *  the kept ones with the reasons. Keeps rollouts of batches, because revisions depend on them. Also keeps rollouts
 *  without a time. */
import { type Digest, type Id, parseId, systemClock } from "../../base/index.ts";
import { BatchShard, Task } from "../../contract/index.ts";
import type { Remains } from "../../keep/erase/index.ts";
import { readRecord } from "../../store/index.ts";
import { type OpenBook, requireWritable, useBook } from "../open/index.ts";
import { listRollouts } from "../rollouts/index.ts";
import { type Eraser, eraseSubjects } from "./erase-subjects.ts";

interface ExpireRequest extends Eraser {
  /** Erases rollouts whose last run ended before this time. */
  readonly beforeMs: number;
  /** Also erases rollouts that batches hold, with the shards that hold their rows. */
  readonly withBatches?: boolean | undefined;
  /** Only reports what would be erased. */
  readonly dryRun?: boolean | undefined;
}

export interface ExpireReport extends Remains {
  readonly dryRun: boolean;
  readonly beforeMs: number;
  readonly erased: number;
  readonly bytes: number;
  readonly tombstones: readonly Digest[];
  /** Old rollouts that are kept because a batch holds their rows. */
  readonly inBatches: number;
  /** Rollouts without a known time. */
  readonly undated: number;
  /** Batches that considered an erased rollout and hold no rows of one. They can no longer be assembled again. */
  readonly batchesKept: readonly Digest[];
  /** Tasks of erased rollouts that are kept because another record of the book names them. */
  readonly tasksKept: readonly Digest[];
}

/** Number of rollouts in one tombstone: a record of unlimited length would not fit into memory. */
const ROLLOUTS_PER_TOMBSTONE = 5_000;

export async function expireRollouts(root: string, request: ExpireRequest): Promise<ExpireReport> {
  const { beforeMs, withBatches = false, dryRun = false, clock = systemClock } = request;
  requireWritable(root);
  const found = await useBook(root, { mode: "read", clock }, (book) => oldRollouts(book, beforeMs));
  const going = found.old.filter(({ content }) => withBatches || !found.batched.has(content));
  const { signer, trustedKeys } = request;
  const tombstones: Digest[] = [];
  const journal = new Set<string>();
  const tasksKept = new Set<Digest>();
  const batchesKept = new Set<Digest>();
  const batchesErased = new Set<Digest>();
  let remains: Pick<ExpireReport, "torn" | "replay"> = { torn: [], replay: [] };
  let bytes = 0;
  for (let from = 0; from < going.length; from += ROLLOUTS_PER_TOMBSTONE) {
    const erased = await eraseSubjects(root, {
      ...{ clock, signer, trustedKeys, withBatches, dryRun, by: parseId("retention") },
      reason: `retention: ended before ${new Date(beforeMs).toISOString()}`,
      subjects: going.slice(from, from + ROLLOUTS_PER_TOMBSTONE),
    });
    if (erased.refusals[0] !== undefined) throw erased.refusals[0];
    bytes += erased.bytes;
    for (const path of erased.journal) journal.add(path);
    for (const task of erased.tasksKept) tasksKept.add(task);
    for (const batch of erased.batchesKept) batchesKept.add(batch);
    for (const batch of erased.batches) batchesErased.add(batch);
    // A task kept for rollouts of a later tombstone is erased together with them.
    for (const { digest, kind } of erased.blobs) if (kind === Task.kind) tasksKept.delete(digest);
    remains = { torn: erased.torn, replay: erased.replay };
    if (erased.tombstone !== undefined) tombstones.push(erased.tombstone);
  }
  if (!dryRun && going.length === 0) {
    const { finishErasure } = await import("../../keep/erase/index.ts");
    await finishErasure(root);
  }
  return {
    ...{ dryRun, beforeMs, erased: going.length, bytes, tombstones },
    ...{ inBatches: found.old.length - going.length, undated: found.undated },
    batchesKept: [...batchesKept].filter((batch) => !batchesErased.has(batch)),
    ...{ tasksKept: [...tasksKept], journal: [...journal], torn: remains.torn, replay: remains.replay },
  };
}

async function oldRollouts(book: OpenBook, beforeMs: number) {
  const old: { rollout: Id; content: Digest }[] = [];
  let undated = 0;
  for (const { rolloutId, content, startedAtMs, endedAtMs } of await listRollouts(book)) {
    // In a log without times, the end is not 0 if the log states the duration of the call. The start is 0.
    if (startedAtMs === 0) undated++;
    else if (endedAtMs < beforeMs) old.push({ rollout: rolloutId as Id, content });
  }
  return { old, undated, batched: old.length === 0 ? new Set<Digest>() : await inBatches(book) };
}

async function inBatches(book: OpenBook): Promise<ReadonlySet<Digest>> {
  const contents = new Set<Digest>();
  for (const { digest } of (await book.index()).ofKind(BatchShard.kind))
    for (const { content } of (await readRecord(book.store, BatchShard, digest)).rows) contents.add(content);
  return contents;
}
