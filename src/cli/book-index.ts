/** Finds records of a book by kind, name and digest prefix.
 *  In: a book. Out: an index of what its records say of themselves. Does not check the records: `verify` does. */
import { compareUtf8, type Digest } from "../base/index.ts";
import { Attestation, openRecord, recordType } from "../contract/index.ts";
import type { BlobStore } from "../store/index.ts";
import { describeRecord, type RecordFacts } from "../store/record-facts.ts";

export interface IndexedRecord extends RecordFacts {
  readonly digest: Digest;
  readonly kind: string;
}

export interface BookIndex {
  /** Sorted by id, then digest. */
  ofKind(kind: string): IndexedRecord[];
  /** Records whose id is `name`, or whose digest begins with it (`sha256:` may be left out). */
  named(name: string): IndexedRecord[];
  attestationsOf(subject: Digest): Digest[];
}

/** Shorter prefixes would be guesses. */
const SHORTEST_PREFIX = 4;

export async function indexBook(store: Pick<BlobStore, "scan" | "get">): Promise<BookIndex> {
  const records = new Map<Digest, IndexedRecord>();
  const attestations = new Map<Digest, Digest[]>();
  for await (const item of store.scan()) {
    if (item.type === "damage" || records.has(item.digest) || recordType(item.kind) === undefined) continue;
    const { digest, kind } = item;
    const bytes = item.type === "blob" ? item.bytes : (await store.get(digest))!.bytes;
    records.set(digest, { digest, kind, ...describeRecord(kind, bytes)! });
    if (kind !== Attestation.kind) continue;
    for (const subject of openRecord(Attestation, bytes).subjects)
      attestations.set(subject, [...(attestations.get(subject) ?? []), digest]);
  }
  const sorted = [...records.values()].sort(
    (a, b) => compareUtf8(a.id ?? "", b.id ?? "") || (a.digest < b.digest ? -1 : 1),
  );
  return {
    ofKind: (kind) => sorted.filter((record) => record.kind === kind),
    named: (name) => sorted.filter((record) => record.id === name || hasPrefix(record.digest, name)),
    attestationsOf: (subject) => attestations.get(subject) ?? [],
  };
}

function hasPrefix(digest: Digest, name: string): boolean {
  const hex = name.replace(/^sha256:/, "");
  return hex.length >= SHORTEST_PREFIX && digest.startsWith(`sha256:${hex}`);
}
