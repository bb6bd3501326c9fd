/** Which records of a book are about certain rollouts and go with them, and which tombstones stand.
 *  In: a book and the digests of contents. Out: records by digest and kind. Reads the whole book once. */
import type { Digest } from "../../base/digest.ts";
import { Feedback } from "../../contract/feedback.ts";
import { openRecord } from "../../contract/record.ts";
import { RolloutContent, RolloutEnvelope } from "../../contract/rollout.ts";
import { RolloutEvent } from "../../contract/rollout-event.ts";
import { type ErasedBlob, Tombstone } from "../../contract/tombstone.ts";
import { BatchShard, TrainerBatch } from "../../contract/trainer-batch.ts";
import type { BlobStore } from "../../store/blob-store.ts";

export type Subject = Tombstone["subjects"][number];

export interface ErasableRecords {
  readonly subjects: readonly Subject[];
  /** Contents, envelopes, events and feedback. */
  readonly records: readonly ErasedBlob[];
  /** Shards with rows of the rollouts, and the batches they belong to. */
  readonly shards: readonly ErasedBlob[];
  readonly batches: readonly Digest[];
  /** Everything that was erased from this book before, by tombstone. */
  readonly tombstones: ReadonlyMap<Digest, Tombstone>;
}

const KINDS: ReadonlySet<string> = new Set(
  [RolloutContent, RolloutEnvelope, RolloutEvent, Feedback, BatchShard, TrainerBatch, Tombstone].map(
    (type) => type.kind,
  ),
);

export async function findErasable(
  store: Pick<BlobStore, "scan" | "get">,
  subjects: readonly Subject[],
): Promise<ErasableRecords> {
  const finder = new Finder(subjects);
  for await (const item of store.scan()) {
    if (item.type === "damage" || !KINDS.has(item.kind)) continue;
    const bytes = item.type === "blob" ? item.bytes : (await store.get(item.digest))?.bytes;
    if (bytes !== undefined) finder.take(item.digest, item.kind, bytes);
  }
  return finder.found();
}

class Finder {
  readonly #subjects: readonly Subject[];
  readonly #contents: ReadonlySet<unknown>;
  readonly #rollouts: ReadonlySet<unknown>;
  readonly #records = new Map<Digest, string>();
  readonly #shards = new Map<Digest, string>();
  readonly #batches = new Map<Digest, readonly Digest[]>();
  readonly #tombstones = new Map<Digest, Tombstone>();

  constructor(subjects: readonly Subject[]) {
    this.#subjects = subjects;
    this.#contents = new Set(subjects.map(({ content }) => content));
    this.#rollouts = new Set(subjects.map(({ rollout }) => rollout));
  }

  take(digest: Digest, kind: string, bytes: Uint8Array): void {
    switch (kind) {
      case RolloutContent.kind:
        if (this.#contents.has(digest)) this.#records.set(digest, kind);
        return;
      case RolloutEnvelope.kind:
        if (this.#contents.has(openRecord(RolloutEnvelope, bytes).content)) this.#records.set(digest, kind);
        return;
      case RolloutEvent.kind:
        if (this.#rollouts.has(openRecord(RolloutEvent, bytes).rollout)) this.#records.set(digest, kind);
        return;
      case Feedback.kind:
        if (this.#contents.has(openRecord(Feedback, bytes).subject)) this.#records.set(digest, kind);
        return;
      case BatchShard.kind:
        if (openRecord(BatchShard, bytes).rows.some(({ content }) => this.#contents.has(content)))
          this.#shards.set(digest, kind);
        return;
      case TrainerBatch.kind:
        this.#batches.set(
          digest,
          openRecord(TrainerBatch, bytes).shards.map((shard) => shard.digest),
        );
        return;
      default:
        this.#tombstones.set(digest, openRecord(Tombstone, bytes));
    }
  }

  found(): ErasableRecords {
    const batches = [...this.#batches].filter(([, shards]) => shards.some((each) => this.#shards.has(each)));
    return {
      subjects: [...this.#subjects].sort((a, b) => (a.content < b.content ? -1 : 1)),
      records: listOf(this.#records),
      shards: listOf(this.#shards),
      batches: batches.map(([digest]) => digest).sort(),
      tombstones: this.#tombstones,
    };
  }
}

function listOf(kinds: ReadonlyMap<Digest, string>): ErasedBlob[] {
  return [...kinds].map(([digest, kind]) => ({ digest, kind }));
}
