/** Selects the sealed bandit increments that are still valid: all their rows are admitted now, with unchanged rewards.
 *  In: an open book, the filters of a state, the rows of its train split. Out: increments, largest first, with the rows
 *  of their batches. Ignores increments without batches, which 0.1.0 sealed: their rows cannot be checked. */
import { canonicalize, type Digest, isRollbookError } from "../../base/index.ts";
import { BanditIncrement } from "../../contract/index.ts";
import { type AdmittedStream, streamKey } from "../../keep/admit/index.ts";
import { readBatch } from "../../keep/batch/index.ts";
import type { FeatureSpec } from "../../policy/index.ts";
import { readRecord } from "../../store/index.ts";
import { type OpenBook, requireTrusted } from "../open/index.ts";

export interface StandingIncrement {
  readonly digest: Digest;
  readonly count: number;
  readonly features: FeatureSpec | undefined;
  /** Batches of the increment, each with the keys of its rows. */
  readonly batches: ReadonlyMap<Digest, readonly string[]>;
}

export async function standingIncrements(
  book: OpenBook,
  { filters, rows }: { filters: Readonly<Record<string, string>>; rows: readonly AdmittedStream[] },
): Promise<StandingIncrement[]> {
  const now = new Map(rows.map(({ content, stream, rewards }) => [streamKey(content, stream), rewards]));
  const checked = new Map<Digest, Promise<readonly string[] | undefined>>();
  const standing: StandingIncrement[] = [];
  const index = await book.index();
  const increments = index.ofKind(BanditIncrement.kind);
  await requireTrusted(book, index, increments);
  for (const { digest } of increments) {
    const record = await readRecord(book.store, BanditIncrement, digest);
    if (record.batches === undefined || canonicalize(record.filters) !== canonicalize(filters)) continue;
    const batches = new Map<Digest, readonly string[]>();
    for (const batch of record.batches) {
      if (!checked.has(batch)) checked.set(batch, standingRows(book, batch, now));
      const keys = await checked.get(batch);
      if (keys !== undefined) batches.set(batch, keys);
    }
    if (batches.size < record.batches.length) continue;
    const features = record.features as FeatureSpec | undefined;
    standing.push({ digest, count: record.decisions.count, features, batches });
  }
  return standing.sort((a, b) => b.count - a.count || (a.digest < b.digest ? -1 : 1));
}

/** Keys of a batch's rows, if all of them are admitted now with unchanged rewards; else undefined. */
async function standingRows(
  book: OpenBook,
  digest: Digest,
  now: ReadonlyMap<string, readonly number[] | undefined>,
): Promise<readonly string[] | undefined> {
  const keys: string[] = [];
  try {
    const batch = await readBatch((each) => book.store.get(each), digest);
    if (batch.level !== "step") return undefined;
    for await (const { content, stream, steps } of batch.rows()) {
      const key = streamKey(content, stream);
      const rewards = now.get(key);
      if (rewards === undefined || steps.some(({ reward }, i) => reward !== rewards[i])) return undefined;
      keys.push(key);
    }
  } catch (error) {
    // An increment with erased rows is no longer valid; `verify` tells if rows were erased or lost.
    if (isRollbookError(error, "missing-blob")) return undefined;
    throw error;
  }
  return keys;
}
