/** Restores the folder of a checkpoint from the book.
 *  In: an open book, the record of a revision, a folder. Out: the folder, written if it does not exist. */
import { existsSync } from "node:fs";
import { type Digest, given, RollbookError } from "../../base/index.ts";
import { FloorPromise, PolicyRevision, type Sealed, seal } from "../../contract/index.ts";
import { decodeModel, writeCheckpoint } from "../../policy/index.ts";
import { OWNER_ONLY, readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";

export async function restoreCheckpoint(book: OpenBook, record: Digest, folder: string): Promise<void> {
  if (existsSync(folder)) return;
  const revision = seal(PolicyRevision, await readRecord(book.store, PolicyRevision, record));
  const bytes = await storedWeights(book, revision.record);
  const model = decodeModel(bytes, revision.record.id);
  const promise = await promiseOf(book, revision.record.digest);
  writeCheckpoint(folder, { model, revision, bytes, ...given({ promise }) }, { mode: OWNER_ONLY });
}

/** Reads the bytes of the weights of a revision. */
export async function storedWeights(
  { store }: Pick<OpenBook, "store">,
  { id, digest }: Pick<PolicyRevision, "id" | "digest">,
): Promise<Uint8Array> {
  const weights = await store.get(digest);
  if (weights !== undefined) return weights.bytes;
  throw new RollbookError(
    "missing-blob",
    { revision: id, digest },
    `the weights of ${id} (${digest}) are not in the book. Restore the book from a copy.`,
  );
}

/** Floor promise for a policy, or undefined. */
async function promiseOf(book: OpenBook, policy: Digest): Promise<Sealed<FloorPromise> | undefined> {
  for (const { digest } of (await book.index()).ofKind(FloorPromise.kind)) {
    const promise = await readRecord(book.store, FloorPromise, digest);
    if (promise.policy.digest === policy) return seal(FloorPromise, promise);
  }
  return undefined;
}
