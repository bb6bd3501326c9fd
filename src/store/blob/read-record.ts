/** Reads one record by digest, checked. In: a store or its reader, the type, the digest. Out: the record, or a refusal:
 *  the record is missing, or it is of another kind. */
import { type Digest, isDigest } from "../../base/index.ts";
import { openRecord, type ReadBlob, type RecordOf, type RecordType, refuse } from "../../contract/index.ts";
import type { BlobStore } from "./blob-store.ts";

/** Reads records of one book, each checked. */
export type ReadRecord = <T extends RecordType>(type: T, digest: Digest) => Promise<RecordOf<T>>;

export async function readRecord<T extends RecordType>(
  store: Pick<BlobStore, "get"> | ReadBlob,
  type: T,
  digest: Digest,
): Promise<RecordOf<T>> {
  // Digests from a queue or a name are not validated yet.
  const blob = isDigest(digest)
    ? await (typeof store === "function" ? store(digest) : store.get(digest))
    : undefined;
  if (blob === undefined)
    throw refuse(
      "missing-blob",
      { digest, kind: type.kind },
      `${type.kind} ${digest} is not in the book. Name the book that has it, or restore it: \`rollbook verify\` lists what is missing.`,
    );
  if (blob.kind !== type.kind)
    throw refuse(
      "unknown-schema",
      { digest, expected: type.kind, actual: blob.kind },
      `${digest} is a ${blob.kind}, not a ${type.kind}. Name a ${type.kind}.`,
    );
  return openRecord(type, blob.bytes, digest);
}
