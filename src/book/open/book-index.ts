/** Finds records of a book by kind, name and digest prefix: through its catalog, or by reading everything.
 *  In: a book. Out: the facts that the records state. Does not check the records: `verify` does. */
import { compareUtf8, type Digest, isDigest } from "../../base/index.ts";
import {
  Attestation,
  Call,
  RolloutContent,
  RolloutEnvelope,
  recordType,
  Tombstone,
} from "../../contract/index.ts";
import {
  type BlobStore,
  type Catalog,
  type CatalogRecord,
  type CatalogRun,
  describeRecord,
  referencesOf,
} from "../../store/index.ts";

/** Facts that a record states, read from a catalog or from a scan. */
export type IndexedRecord = CatalogRecord;
export type IndexedRun = CatalogRun;

export interface BookIndex {
  /** Sorted by id, then digest. */
  ofKind(kind: string): IndexedRecord[];
  /** Records whose id is `name`, or whose digest begins with it (`sha256:` may be left out). */
  named(name: string): IndexedRecord[];
  /** Blobs of any kind whose digest begins with `name`. */
  blobsNamed(name: string): Digest[];
  record(digest: Digest): IndexedRecord | undefined;
  /** Records of these digests, sorted by id, then digest. */
  recordsWith(digests: readonly Digest[]): IndexedRecord[];
  /** Records of this kind with one of these ids. */
  digestsOf(kind: string, ids: readonly string[]): { id: string; digest: Digest }[];
  /** Envelopes with their contents, sorted by end time, latest first. */
  runs(): Iterable<IndexedRun>;
  /** Records of these kinds whose subject or content is one of `subjects`, sorted by id, then digest. */
  about(subjects: readonly Digest[], kinds: readonly string[]): IndexedRecord[];
  attestationsOf(subject: Digest): Digest[];
  /** Tombstones that name this digest as erased. */
  tombstonesOf(erased: Digest): Digest[];
  /** Digests that a signature covers and the book does not hold, except erased ones. */
  lostSubjects(): Digest[];
  /** Ids of the rollouts that use a content, an envelope, a call or a blob, if the catalog remembers them. */
  rolloutsWith(digest: Digest): string[];
}

/** Minimum length of a digest prefix; shorter ones would be guesses. */
export const SHORTEST_PREFIX = 4;

/** Index through a catalog that is up to date. */
export function catalogIndex(catalog: Catalog): BookIndex {
  return {
    ofKind: (kind) => [...catalog.records({ kind })].sort(byIdAndDigest),
    named(name) {
      const found = new Map([...catalog.records({ id: name })].map((record) => [record.digest, record]));
      const prefix = prefixOf(name);
      if (prefix !== undefined)
        for (const record of catalog.recordsStarting(prefix)) found.set(record.digest, record);
      return [...found.values()].sort(byIdAndDigest);
    },
    blobsNamed(name) {
      const prefix = prefixOf(name);
      return prefix === undefined ? [] : catalog.blobsStarting(prefix);
    },
    record: (digest) => catalog.record(digest),
    digestsOf: (kind, ids) => catalog.digestsOf(kind, ids),
    runs: () => catalog.runs(),
    recordsWith: (digests) => catalog.recordsWith(digests).sort(byIdAndDigest),
    about: (subjects, kind) =>
      catalog.recordsReferringTo(subjects, kind).filter(isAbout(subjects)).sort(byIdAndDigest),
    attestationsOf: (subject) => catalog.referrersOfKind(subject, Attestation.kind),
    tombstonesOf: (erased) => catalog.referrersOfKind(erased, Tombstone.kind),
    lostSubjects: () =>
      catalog
        .danglingTargets(Attestation.kind)
        .filter((digest) => catalog.referrersOfKind(digest, Tombstone.kind).length === 0),
    rolloutsWith: (digest) => rolloutsWith(catalog, digest),
  };
}

function rolloutsWith(catalog: Catalog, digest: Digest): string[] {
  const calls = catalog.recordsReferringTo([digest], [Call.kind]).map((call) => call.digest);
  const contents = [
    ...catalog.recordsWith([digest, ...contentOf(catalog.record(digest))]),
    ...catalog.recordsReferringTo([digest, ...calls], [RolloutContent.kind]),
  ];
  return [
    ...new Set(contents.flatMap(({ kind, id }) => (kind === RolloutContent.kind ? (id ?? []) : []))),
  ].sort();
}

/** `verify` calls this function with a catalog that may be damaged itself. */
function contentOf(record: IndexedRecord | undefined): Digest[] {
  const content = record?.kind === RolloutEnvelope.kind ? record.fields.content : undefined;
  return isDigest(content) ? [content] : [];
}

/** Index of a store without a catalog. It takes as long as reading the whole store. */
export async function scanIndex(store: Pick<BlobStore, "scan" | "get">): Promise<BookIndex> {
  const records = new Map<Digest, IndexedRecord>();
  const blobs = new Set<Digest>();
  const attestations = new Map<Digest, Digest[]>();
  const tombstones = new Map<Digest, Digest[]>();
  for await (const item of store.scan()) {
    if (item.type !== "damage") blobs.add(item.digest);
    if (item.type === "damage" || records.has(item.digest) || recordType(item.kind) === undefined) continue;
    const { digest, kind } = item;
    const bytes = item.type === "blob" ? item.bytes : (await store.get(digest))!.bytes;
    records.set(digest, { digest, kind, ...describeRecord(kind, bytes)! });
    const by = kind === Attestation.kind ? attestations : kind === Tombstone.kind ? tombstones : undefined;
    if (by === undefined) continue;
    for (const subject of referencesOf(kind, bytes)) by.set(subject, [...(by.get(subject) ?? []), digest]);
  }
  const sorted = [...records.values()].sort(byIdAndDigest);
  return {
    ofKind: (kind) => sorted.filter((record) => record.kind === kind),
    named(name) {
      const prefix = prefixOf(name);
      const starts = (digest: Digest) => prefix !== undefined && digest.startsWith(`sha256:${prefix}`);
      return sorted.filter((record) => record.id === name || starts(record.digest));
    },
    blobsNamed(name) {
      const prefix = prefixOf(name);
      return [...blobs]
        .filter((digest) => prefix !== undefined && digest.startsWith(`sha256:${prefix}`))
        .sort();
    },
    record: (digest) => records.get(digest),
    recordsWith: (digests) =>
      [...new Set(digests)].flatMap((digest) => records.get(digest) ?? []).sort(byIdAndDigest),
    digestsOf(kind, ids) {
      const wanted = new Set<string | undefined>(ids);
      const found = sorted.filter((record) => record.kind === kind && wanted.has(record.id));
      return found.map(({ id, digest }) => ({ id: id!, digest }));
    },
    runs: () => runsIn(records),
    about: (subjects, kinds) => sorted.filter(({ kind }) => kinds.includes(kind)).filter(isAbout(subjects)),
    attestationsOf: (subject) => attestations.get(subject) ?? [],
    tombstonesOf: (erased) => tombstones.get(erased) ?? [],
    lostSubjects: () =>
      [...attestations.keys()].filter((digest) => !records.has(digest) && !tombstones.has(digest)),
    rolloutsWith: () => [], // a scan does not see damaged records
  };
}

/** A record can mention digests that are not its subject. */
function isAbout(subjects: readonly Digest[]): (record: IndexedRecord) => boolean {
  const wanted = new Set<unknown>(subjects);
  return ({ fields }) => wanted.has(fields.subject) || wanted.has(fields.content);
}

function runsIn(records: ReadonlyMap<Digest, IndexedRecord>): IndexedRun[] {
  const endedAt = ({ envelope }: IndexedRun) => envelope.fields.endedAtMs as number;
  return [...records.values()]
    .flatMap((envelope) => {
      const content = records.get(envelope.fields.content as Digest);
      return envelope.kind !== RolloutEnvelope.kind || content === undefined ? [] : [{ envelope, content }];
    })
    .sort((a, b) => endedAt(b) - endedAt(a) || byIdAndDigest(a.content, b.content));
}

function prefixOf(name: string): string | undefined {
  const hex = name.replace(/^sha256:/, "").toLowerCase();
  return hex.length >= SHORTEST_PREFIX && /^[0-9a-f]{1,64}$/.test(hex) ? hex : undefined;
}

function byIdAndDigest(a: IndexedRecord, b: IndexedRecord): number {
  return compareUtf8(a.id ?? "", b.id ?? "") || (a.digest < b.digest ? -1 : 1);
}
