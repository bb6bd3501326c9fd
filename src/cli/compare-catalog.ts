/** Compares a catalog with the bytes it claims to describe, while something else reads them.
 *  In: the items of a scan. Out: differences in words. Changes nothing. */
import { canonicalize, type Digest } from "../base/index.ts";
import { recordType } from "../contract/index.ts";
import type { BlobStore, Catalog, ScanItem } from "../store/index.ts";
import { describeRecord } from "../store/record-facts.ts";

export interface CatalogDifference {
  readonly digest: Digest;
  readonly message: string;
}

export class CatalogComparison {
  readonly differences: CatalogDifference[] = [];
  readonly #catalog: Catalog;
  readonly #seen = new Set<Digest>();

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  /** The same store, with everything that a scan yields compared in passing. */
  watch(store: Pick<BlobStore, "scan" | "get">): Pick<BlobStore, "scan" | "get"> {
    return { get: (digest) => store.get(digest), scan: () => this.#watched(store) };
  }

  /** After the scan: what the catalog lists and the bytes do not hold. */
  finish(): readonly CatalogDifference[] {
    for (const { digest, kind } of this.#catalog.records())
      if (!this.#seen.has(digest)) this.#differ(digest, `lists a ${kind} that the packs do not hold`);
    return this.differences;
  }

  async *#watched(store: Pick<BlobStore, "scan" | "get">): AsyncGenerator<ScanItem> {
    for await (const item of store.scan()) {
      if (item.type !== "damage" && recordType(item.kind) !== undefined && !this.#seen.has(item.digest)) {
        this.#seen.add(item.digest);
        const bytes = item.type === "blob" ? item.bytes : (await store.get(item.digest))!.bytes;
        this.#compare(item.digest, item.kind, bytes);
      }
      yield item;
    }
  }

  #compare(digest: Digest, kind: string, bytes: Uint8Array): void {
    const facts = describe(kind, bytes);
    const listed = this.#catalog.record(digest);
    if (facts === undefined) return;
    const said = canonicalize({ digest, kind, ...facts });
    if (listed === undefined) this.#differ(digest, `misses this ${kind}`);
    else if (canonicalize(listed) !== said)
      this.#differ(digest, `describes this ${kind} otherwise than its bytes do`);
  }

  #differ(digest: Digest, what: string): void {
    this.differences.push({ digest, message: `the catalog ${what}` });
  }
}

/** A record that cannot be read is not listed; `verify` says why it cannot. */
function describe(kind: string, bytes: Uint8Array): object | undefined {
  try {
    return describeRecord(kind, bytes);
  } catch {
    return undefined;
  }
}
