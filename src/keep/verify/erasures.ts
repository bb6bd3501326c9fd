/** The tombstones of a book, and references to erased blobs.
 *  In: tombstones, and references to missing blobs. Out: an answer if a blob was erased, and a report. Believes every
 *  tombstone; the report shows separately if a trusted key signed it. */
import type { Digest } from "../../base/index.ts";
import type { Reference, Tombstone } from "../../contract/index.ts";
import type { ErasedReport } from "./report.ts";
import type { TrustTally } from "./trust-tally.ts";

export class Erasures {
  readonly #tombstones = new Map<Digest, Tombstone>();
  /** Kind of each erased blob, by digest. */
  readonly #erased = new Map<Digest, string>();
  readonly #met = new Set<Digest>();
  readonly #batches: ErasedReport["batches"] = [];
  #references = 0;

  add(digest: Digest, tombstone: Tombstone): void {
    this.#tombstones.set(digest, tombstone);
    for (const each of [...tombstone.records, ...tombstone.blobs]) this.#erased.set(each.digest, each.kind);
  }

  names(digest: Digest): boolean {
    return this.#erased.has(digest);
  }

  /** True if the reference leads to an erased blob; counts the reference. */
  meets({ digest, kind }: Reference): boolean {
    const erased = this.#erased.get(digest);
    if (erased === undefined || (kind !== "" && kind !== erased)) return false;
    this.#met.add(digest);
    this.#references++;
    return true;
  }

  addBatch(batch: ErasedReport["batches"][number]): void {
    this.#batches.push(batch);
  }

  /** Records that should be gone and are present: the erasure was interrupted, or the records were put back. */
  *unfinished(isThere: (digest: Digest) => boolean): Generator<{ digest: Digest; kind: string; by: Digest }> {
    for (const [by, { records }] of this.#tombstones)
      for (const { digest, kind } of records) if (isThere(digest)) yield { digest, kind, by };
  }

  report(trust: TrustTally, { whole }: { whole: boolean }): ErasedReport {
    const rollouts = [...this.#tombstones].flatMap(([tombstone, { subjects }]) =>
      subjects
        .filter(({ content }) => whole || this.#met.has(content))
        .map(({ rollout, content }) => ({ rollout: rollout as string, content, tombstone })),
    );
    const tombstones = [...this.#tombstones].map(([digest, { reason, by, atMs, records, blobs }]) => ({
      ...{ digest, reason, by: by as string, atMs, blobs: records.length + blobs.length },
      ...trust.trustOf(digest),
    }));
    return { rollouts, references: this.#references, batches: this.#batches, tombstones };
  }
}
