/** Reads, lists, compares and exports the trainer batches of a book.
 *  In: an open book, the digest of a batch or its first digits. Out: records, rows, files. Does not change the book. */
import { type Digest, isDigest, short } from "../../base/index.ts";
import {
  BatchGroups,
  LossLedger,
  PolicyRevisionLineage,
  type RecordOf,
  TrainerBatch,
} from "../../contract/index.ts";
import type { ExportFormat } from "../../convert/batch/index.ts";
import {
  type BatchDifference,
  diffBatches,
  type ReadableBatch,
  readBatch as readRows,
} from "../../keep/batch/index.ts";
import { readRecord } from "../../store/index.ts";
import { type OpenBook, readOf, requireTrusted, resolveBatch } from "../open/index.ts";

export interface BatchDetails {
  readonly digest: Digest;
  readonly batch: TrainerBatch;
  readonly lineage: PolicyRevisionLineage;
  readonly ledger: LossLedger;
  /** Groups whose rollouts all have the same reward, so that every advantage in them is 0. */
  readonly equalGroups: number;
}

interface ExportedBatch {
  readonly batch: Digest;
  readonly format: ExportFormat;
  readonly out: string;
  readonly rows: number;
  readonly samples: number;
  readonly bytes: number;
}

export async function listBatches(book: OpenBook): Promise<{ digest: Digest; batch: TrainerBatch }[]> {
  const found = (await book.index()).ofKind(TrainerBatch.kind);
  return Promise.all(
    found.map(async ({ digest }) => ({ digest, batch: await readRecord(book.store, TrainerBatch, digest) })),
  );
}

/** Reads the batch with its lineage and the ledger of its exclusions. */
export async function showBatch(book: OpenBook, name: string): Promise<BatchDetails> {
  const digest = await digestOf(book, name);
  const batch = await readRecord(book.store, TrainerBatch, digest);
  return {
    digest,
    batch,
    lineage: await readRecord(book.store, PolicyRevisionLineage, batch.lineage),
    ledger: await readRecord(book.store, LossLedger, batch.ledger),
    equalGroups: (await readRecord(book.store, BatchGroups, batch.groups)).groups.filter(isEqual).length,
  };
}

/** True if all rewards of a group are equal; the spread may differ from 0 by rounding. If a rollout has several rows,
 *  the spread says nothing about its rows. */
function isEqual({
  rows,
  rollouts,
  baseline,
  spread,
}: RecordOf<typeof BatchGroups>["groups"][number]): boolean {
  return rows === rollouts && spread <= 1e-9 * Math.max(1, Math.abs(baseline));
}

/** Reads the rows of a batch, shard by shard. Reading erased rows fails with `erased`. If trust is required, a batch
 *  that no trusted key signed is refused, because its manifest may omit a verdict. */
export async function readBatch(book: OpenBook, name: string): Promise<ReadableBatch> {
  const digest = await digestOf(book, name);
  if (book.required !== undefined)
    await requireTrusted(book, await book.index(), [{ digest, kind: TrainerBatch.kind }]);
  return readRows(readOf(book, `batch ${short(digest)}`), digest);
}

/** Writes the rows of a batch to one file for a trainer. The file is never overwritten. */
export async function exportBatch(
  book: OpenBook,
  name: string,
  { format, out }: { format: ExportFormat; out: string },
): Promise<ExportedBatch> {
  const { exportBatch: writeFile } = await import("../../convert/batch/index.ts");
  const source = await readBatch(book, name);
  const { bytes } = await writeFile(source, { format, out });
  const { rows, samples } = source.record.totals;
  return { batch: source.digest, format, out, rows, samples, bytes };
}

/** Compares two batches and explains the differences. */
export async function compareBatches(
  book: OpenBook,
  first: string,
  second: string,
): Promise<readonly BatchDifference[]> {
  const [left, right] = [await digestOf(book, first), await digestOf(book, second)];
  return diffBatches((digest) => book.store.get(digest), left, right);
}

/** A complete digest is not looked up: the index would first read everything that was written since. */
async function digestOf(book: OpenBook, name: string): Promise<Digest> {
  return isDigest(name) ? name : resolveBatch(await book.index(), name).digest;
}
