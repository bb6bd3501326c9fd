/** Finds the records of a book that belong to given rollouts and are erased with them, and the existing tombstones.
 *  In: a book and the digests of contents. Out: records by digest and kind. Reads the whole book once. */
import type { Digest } from "../../base/index.ts";
import {
  Assignment,
  BatchShard,
  type ErasedBlob,
  Feedback,
  Manifest,
  openRecord,
  RolloutContent,
  RolloutEnvelope,
  RolloutEvent,
  rolloutIdFor,
  Task,
  Tombstone,
  TrainerBatch,
} from "../../contract/index.ts";
import type { BlobStore } from "../../store/index.ts";

export type Subject = Tombstone["subjects"][number];

export interface ErasableRecords {
  readonly subjects: readonly Subject[];
  /** Contents, envelopes, events and feedback. */
  readonly records: readonly ErasedBlob[];
  /** Shards with rows of the rollouts, and the batches they belong to. */
  readonly shards: readonly ErasedBlob[];
  readonly batches: readonly Digest[];
  /** Batches whose manifest lists a rollout, and whose shards stay: none holds a row of the rollouts. */
  readonly batchesKept: readonly Digest[];
  /** Tasks that the rollouts name, or that an interrupted erasure removed with them. */
  readonly tasks: readonly Digest[];
  /** Assignments with an erased rollout: they name the task by digest and do not hold its text. */
  readonly assignments: readonly Digest[];
  /** Earlier tombstones of this book. */
  readonly tombstones: ReadonlyMap<Digest, Tombstone>;
}

const KINDS: ReadonlySet<string> = new Set(
  [
    ...[RolloutContent, RolloutEnvelope, RolloutEvent, Feedback],
    ...[BatchShard, TrainerBatch, Manifest, Assignment, Tombstone],
  ].map((type) => type.kind),
);

/** Samples of one assignment that are searched by name; a record may claim any number. */
const MOST_SAMPLES = 10_000;

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
  /** Shards without rows of the rollouts. */
  readonly #otherShards = new Set<Digest>();
  readonly #batches = new Map<Digest, { manifest: Digest; shards: readonly Digest[] }>();
  /** Manifests that list a rollout. */
  readonly #manifests = new Set<Digest>();
  readonly #tasks = new Set<Digest>();
  readonly #assignments = new Set<Digest>();
  /** Every assignment of the book that names a task's digest. */
  readonly #planned = new Map<Digest, { task: Digest; samples: number }>();
  readonly #tombstones = new Map<Digest, Tombstone>();

  constructor(subjects: readonly Subject[]) {
    this.#subjects = subjects;
    this.#contents = new Set(subjects.map(({ content }) => content));
    this.#rollouts = new Set(subjects.map(({ rollout }) => rollout));
  }

  take(digest: Digest, kind: string, bytes: Uint8Array): void {
    switch (kind) {
      case RolloutContent.kind:
        if (this.#contents.has(digest)) this.#takeContent(digest, bytes);
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
        else this.#otherShards.add(digest);
        return;
      case TrainerBatch.kind: {
        const { manifest, shards } = openRecord(TrainerBatch, bytes);
        this.#batches.set(digest, { manifest, shards: shards.map((shard) => shard.digest) });
        return;
      }
      case Manifest.kind:
        if (openRecord(Manifest, bytes).artifacts.some(({ content }) => this.#contents.has(content)))
          this.#manifests.add(digest);
        return;
      case Assignment.kind: {
        const { task, samples } = openRecord(Assignment, bytes);
        if (task.digest !== undefined) this.#planned.set(digest, { task: task.digest, samples });
        return;
      }
      default:
        this.#tombstones.set(digest, openRecord(Tombstone, bytes));
    }
  }

  #takeContent(digest: Digest, bytes: Uint8Array): void {
    const { task, assignment } = openRecord(RolloutContent, bytes);
    this.#records.set(digest, RolloutContent.kind);
    if (task.digest !== undefined) this.#tasks.add(task.digest);
    if (assignment !== undefined) this.#assignments.add(assignment.digest);
  }

  /** Adds tasks and assignments from earlier tombstones, because the contents that named them may be gone. */
  #takeEarlier(): void {
    const begun = new Set<Digest>();
    const erased = new Set<string>();
    for (const { subjects, blobs } of this.#tombstones.values()) {
      // The rollout of a later claim has the claim's number as a suffix of its name.
      for (const { rollout } of subjects) erased.add(rollout.replace(/\.\d+$/, ""));
      if (!subjects.some(({ content }) => this.#contents.has(content))) continue;
      for (const { digest, kind } of blobs) if (kind === Task.kind) begun.add(digest);
    }
    for (const task of begun) this.#tasks.add(task);
    for (const [digest, { task, samples }] of this.#planned)
      if (begun.has(task) || (this.#tasks.has(task) && namesOne(erased, digest, samples)))
        this.#assignments.add(digest);
  }

  found(): ErasableRecords {
    this.#takeEarlier();
    const all = [...this.#batches];
    const held = all.filter(([, { shards }]) => shards.some((each) => this.#shards.has(each)));
    // An earlier erasure may have removed shards of a batch.
    const kept = all.filter(
      ([, { manifest, shards }]) =>
        this.#manifests.has(manifest) && shards.every((each) => this.#otherShards.has(each)),
    );
    return {
      subjects: [...this.#subjects].sort((a, b) => (a.content < b.content ? -1 : 1)),
      records: listOf(this.#records),
      shards: listOf(this.#shards),
      batches: held.map(([digest]) => digest).sort(),
      batchesKept: kept.map(([digest]) => digest).sort(),
      tasks: [...this.#tasks].sort(),
      assignments: [...this.#assignments],
      tombstones: this.#tombstones,
    };
  }
}

/** True if a rollout of the assignment is in the set. A launch names a rollout by its assignment and sample. */
function namesOne(rollouts: ReadonlySet<string>, assignment: Digest, samples: number): boolean {
  if (rollouts.size === 0) return false;
  for (let sample = 0; sample < Math.min(samples, MOST_SAMPLES); sample++)
    if (rollouts.has(rolloutIdFor(assignment, sample))) return true;
  return false;
}

function listOf(kinds: ReadonlyMap<Digest, string>): ErasedBlob[] {
  return [...kinds].map(([digest, kind]) => ({ digest, kind }));
}
