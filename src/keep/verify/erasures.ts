/** What the tombstones of a book say, and which references lead to what they name.
 *  In: tombstones, and references to what is not there. Out: whether it was erased, and a report. Believes every
 *  tombstone: whether a trusted key signed it is reported beside. */
import type { Digest } from "../../base/index.ts";
import type { Reference, Tombstone } from "../../contract/index.ts";
import type { ErasedReport } from "./report.ts";
import type { TrustTally } from "./trust-tally.ts";

export class Erasures {
  readonly #tombstones = new Map<Digest, Tombstone>();
  /** By digest: the kind that was erased. */
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

  /** True if the reference leads to something erased, which is then counted. */
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

  /** Records that must be gone and are here: the erasure was cut short, or somebody brought them back. */
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
