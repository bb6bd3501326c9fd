/** Seals rollouts (and whatever else is signed) durably: many at once, one signature and one fsync for all that wait.
 *  A commit starts as soon as the one before it ends; there is no timer to wait for. */
import type { Digest } from "../base/digest.ts";
import type { Signer } from "../contract/attestation.ts";
import type { SealedBlob } from "../contract/rollout-draft.ts";
import type { BlobStore } from "./blob-store.ts";

/** A sealed rollout, or another record in the place of its envelope: that is what gets signed. */
export interface Sealable {
  readonly envelope: { readonly digest: Digest };
  readonly blobs: readonly SealedBlob[];
  /** What is signed beside the envelope. */
  readonly others?: readonly Digest[];
}

export interface Sealer {
  /** Resolves when the rollout, and its signature if there is a signer, survive a crash. */
  add(rollout: Sealable): Promise<void>;
}

/** An attestation lists its subjects, so it stays small enough to travel with any one of them. */
const SUBJECTS_PER_SIGNATURE = 256;

export function makeSealer(store: Pick<BlobStore, "put" | "flush">, signer?: Signer): Sealer {
  let waiting: { rollout: Sealable; done: () => void; failed: (error: unknown) => void }[] = [];
  let committing = false;

  async function commitAll(): Promise<void> {
    committing = true;
    // Rollouts added in this very turn of the event loop join the first commit.
    await Promise.resolve();
    while (waiting.length > 0) {
      const group = waiting;
      waiting = [];
      try {
        // Together, so that no flush of somebody else comes between a record and its signature.
        for (const { rollout } of group) for (const { kind, bytes } of rollout.blobs) store.put(kind, bytes);
        if (signer !== undefined)
          sign(
            group.flatMap(({ rollout }) => [rollout.envelope.digest, ...(rollout.others ?? [])]),
            signer,
          );
        await store.flush();
        for (const { done } of group) done();
      } catch (error) {
        for (const { failed } of group) failed(error);
      }
    }
    committing = false;
  }

  function sign(subjects: readonly Digest[], by: Signer): void {
    for (let i = 0; i < subjects.length; i += SUBJECTS_PER_SIGNATURE) {
      const attestation = by.attest(subjects.slice(i, i + SUBJECTS_PER_SIGNATURE));
      store.put(attestation.kind, attestation.bytes);
    }
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
