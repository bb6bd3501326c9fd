/** Compares a catalog with the bytes that it describes, during a scan by another reader.
 *  In: the items of a scan. Out: differences in words. Concurrent writes are no difference. Before a record is reported
 *  as missing, the catalog is updated. Before a record is reported as extra, the book is asked. */
import { canonicalize, type Digest, DigestTable } from "../../base/index.ts";
import { recordType } from "../../contract/index.ts";
import {
  type BlobStore,
  type Catalog,
  describeRecord,
  type Location,
  referencesOf,
  type ScanItem,
} from "../../store/index.ts";

export interface CatalogDifference {
  readonly digest: Digest;
  readonly message: string;
}

export class CatalogComparison {
  readonly differences: CatalogDifference[] = [];
  readonly #catalog: Catalog;
  readonly #seen = new Set<Digest>();
  /** Digests that the catalog did not list when the scan reached them, with their kinds. */
  readonly #missed = new Map<Digest, string>();
  /** Every blob of the book. */
  readonly #blobs = new DigestTable();
  /** Blobs that the catalog did not list at the place where the scan found them. */
  readonly #misplaced = new Map<Digest, { kind: string; location: Location }>();

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  /** Wraps a store so that every item of a scan is compared as it passes. */
  watch(store: Pick<BlobStore, "scanRuns" | "get">): Pick<BlobStore, "scanRuns" | "get"> {
    return { get: (digest) => store.get(digest), scanRuns: () => this.#watched(store) };
  }

  /** Reports, after the scan, records missing in the catalog and records that only the catalog lists. */
  async finish(
    store: Pick<BlobStore, "has">,
    { isFolded }: { isFolded: (head: Digest) => boolean },
  ): Promise<readonly CatalogDifference[]> {
    if (this.#missed.size + this.#misplaced.size > 0) await this.#catalog.sync();
    for (const [digest, blob] of this.#misplaced)
      if (!this.#catalog.lists({ digest, ...blob }))
        this.#differ(digest, `does not list this ${blob.kind} at its place`);
    for (const digest of this.#catalog.listed())
      if (this.#blobs.find(digest) < 0 && !(await store.has(digest)))
        this.#differ(digest, "lists a blob, or references of one, that the packs do not hold");
    for (const [digest, kind] of this.#missed)
      if (this.#catalog.record(digest) === undefined) this.#differ(digest, `misses this ${kind}`);
    const unseen = [...this.#catalog.records()].filter(({ digest }) => !this.#seen.has(digest));
    for (const { digest, kind } of unseen)
      if (!(await store.has(digest))) this.#differ(digest, `lists a ${kind} that the packs do not hold`);
    for (const { digest, kind, pack } of this.#catalog.lost())
      if (!isFolded(digest)) this.#differ(digest, `remembers this ${kind} in packs/${pack}, which is gone`);
    return this.differences;
  }

  async *#watched(store: Pick<BlobStore, "scanRuns" | "get">): AsyncGenerator<Iterable<ScanItem>> {
    for await (const run of store.scanRuns()) {
      const large: { digest: Digest; kind: string }[] = [];
      yield this.#compareRun(run, large);
      for (const { digest, kind } of large) this.#compare(digest, kind, (await store.get(digest))!.bytes);
    }
  }

  *#compareRun(run: Iterable<ScanItem>, large: { digest: Digest; kind: string }[]): Generator<ScanItem> {
    for (const item of run) {
      if (item.type !== "damage") this.#place(item);
      if (item.type !== "damage" && recordType(item.kind) !== undefined && !this.#seen.has(item.digest)) {
        this.#seen.add(item.digest);
        if (item.type === "blob") this.#compare(item.digest, item.kind, item.bytes);
        else large.push(item);
      }
      yield item;
    }
  }

  #place({ digest, kind, location }: Extract<ScanItem, { digest: Digest }>): void {
    this.#blobs.add(digest);
    if (!this.#catalog.lists({ digest, kind, location })) this.#misplaced.set(digest, { kind, location });
  }

  #compare(digest: Digest, kind: string, bytes: Uint8Array): void {
    const facts = describe(kind, bytes);
    const listed = this.#catalog.record(digest);
    if (facts === undefined) return;
    const targets = [...new Set(referencesOf(kind, bytes))].sort();
    if (listed !== undefined && targets.join() !== this.#catalog.referencesOf(digest).join())
      this.#differ(digest, `has other references of this ${kind} than its bytes`);
    const said = canonicalize({ digest, kind, ...facts });
    if (listed === undefined) this.#missed.set(digest, kind);
    else if (canonicalize(listed) !== said)
      this.#differ(digest, `describes this ${kind} otherwise than its bytes do`);
  }

  #differ(digest: Digest, what: string): void {
    this.differences.push({ digest, message: `the catalog ${what}` });
  }
}

/** Facts of a record; undefined if it cannot be read. `verify` reports the reason. */
function describe(kind: string, bytes: Uint8Array): object | undefined {
  try {
    return describeRecord(kind, bytes);
  } catch {
    return undefined;
  }
}
