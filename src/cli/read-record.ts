/** Reads one record of a book by digest, checked. */
import type { Digest } from "../base/index.ts";
import { openRecord, type RecordOf, type RecordType } from "../contract/index.ts";
import { refuse } from "../contract/refusal.ts";
import type { BlobStore } from "../store/index.ts";

export async function readRecord<T extends RecordType>(
  store: Pick<BlobStore, "get">,
  type: T,
  digest: Digest,
): Promise<RecordOf<T>> {
  const blob = await store.get(digest);
  if (blob?.kind === type.kind) return openRecord(type, blob.bytes, digest);
  const found = blob === undefined ? "is not in the book" : `is a ${blob.kind}, not a ${type.kind}`;
  throw refuse(
    "missing-blob",
    { digest, kind: type.kind },
    `${digest} ${found}. Run \`rollbook verify\` to see what is damaged.`,
  );
}
