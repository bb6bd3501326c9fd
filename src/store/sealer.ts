/** Seals rollouts (and whatever else is signed) durably: many at once, one signature and one fsync for all that wait.
 *  A commit starts as soon as the one before it has ended and its group is complete, which `gather` decides: there is no
 *  timer here. */
import type { Digest } from "../base/index.ts";
import type { SealedBlob, Signer } from "../contract/index.ts";
import type { BlobStore } from "./blob/index.ts";

/** A sealed rollout, or another record in the place of its envelope: that is what gets signed. */
export interface Sealable {
  readonly envelope: { readonly digest: Digest };
  readonly blobs: readonly Omit<SealedBlob, "digest">[];
  /** What is signed beside the envelope. */
  readonly others?: readonly Digest[];
}

export interface Sealer<R extends Sealable = Sealable> {
  /** Resolves when the rollout, and its signature if there is a signer, survive a crash. */
  add(rollout: R): Promise<void>;
}

export interface GroupOptions<R extends Sealable> {
  /** Resolves when a group that has begun may be closed: whatever comes until then belongs to it. */
  gather(): Promise<void>;
  /** Makes the signatures of a group, and whatever else has to be done before anything of it is stored. */
  prepare(group: readonly R[]): Promise<readonly SealedBlob[]>;
}

/** An attestation lists its subjects, so it stays small enough to travel with any one of them. */
const SUBJECTS_PER_SIGNATURE = 256;

export function makeSealer(store: Pick<BlobStore, "put" | "flush">, signer?: Signer): Sealer {
  return makeGroupSealer(store, {
    // What is added in this very turn of the event loop joins the first commit.
    gather: () => Promise.resolve(),
    prepare: async (group) => (signer === undefined ? [] : attest(subjectsOf(group), signer)),
  });
}

/** The same for who has to do more, or to ask somebody, before a group is committed. */
export function makeGroupSealer<R extends Sealable>(
  store: Pick<BlobStore, "put" | "flush">,
  { gather, prepare }: GroupOptions<R>,
): Sealer<R> {
  let waiting: { rollout: R; done: () => void; failed: (error: unknown) => void }[] = [];
  let committing = false;

  async function commitAll(): Promise<void> {
    committing = true;
    while (waiting.length > 0) {
      await gather();
      const group = waiting;
      waiting = [];
      try {
        const attestations = await prepare(group.map(({ rollout }) => rollout));
        // Together, so that no flush of somebody else comes between a record and its signature.
        for (const { rollout } of group) for (const { kind, bytes } of rollout.blobs) store.put(kind, bytes);
        for (const { kind, bytes } of attestations) store.put(kind, bytes);
        await store.flush();
        for (const { done } of group) done();
      } catch (error) {
        for (const { failed } of group) failed(error);
      }
    }
    committing = false;
  }

  return {
    add(rollout) {
      return new Promise((done, failed) => {
        waiting.push({ rollout, done, failed });
        if (!committing) void commitAll();
      });
    },
  };
}

/** What a group is signed for. */
export function subjectsOf(group: readonly Sealable[]): Digest[] {
  return group.flatMap(({ envelope, others = [] }) => [envelope.digest, ...others]);
}

export function attest(subjects: readonly Digest[], signer: Signer): SealedBlob[] {
  const attestations: SealedBlob[] = [];
  for (let i = 0; i < subjects.length; i += SUBJECTS_PER_SIGNATURE)
    attestations.push(signer.attest(subjects.slice(i, i + SUBJECTS_PER_SIGNATURE)));
  return attestations;
}
