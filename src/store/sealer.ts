/** Seals rollouts (and whatever else is signed) durably: many at once, one signature and one fsync for all that wait.
 *  In: sealed records. Out: a promise for each, resolved when it is durable and signed. A commit starts when the one
 *  before it has ended; a rollout without a waiting client may wait a little for others. */
import { type Digest, digestBytes } from "../base/index.ts";
import type { SealedBlob, Signer } from "../contract/index.ts";
import type { Blob, BlobStore } from "./blob/index.ts";
import { isSignedKind } from "./catalog/index.ts";
import { GroupCommit } from "./disk/index.ts";

/** A sealed rollout, or another record in the place of its envelope. The envelope is signed, and so is every blob of a
 *  kind that has to be. */
export interface Sealable {
  readonly envelope: { readonly digest: Digest };
  readonly blobs: readonly UnsealedBlob[];
  /** What is signed beside them: it was put before. */
  readonly others?: readonly Digest[];
}

type UnsealedBlob = Blob & { readonly digest?: Digest };

export interface Sealer<R extends Sealable = Sealable> {
  /** Resolves when the rollout, and its signature if there is a signer, survive a crash. Its commit starts within
   *  `withinMs`. */
  add(rollout: R, withinMs?: number): Promise<void>;
}

interface GroupOptions<R extends Sealable> {
  /** A group of this size does not wait for more. */
  readonly enough?: number;
  /** Makes the signatures of a group, and whatever else has to be done before anything of it is stored. */
  prepare(group: readonly R[]): Promise<readonly SealedBlob[]>;
}

/** An attestation lists its subjects, so it stays small enough to travel with any one of them. */
export const SUBJECTS_PER_SIGNATURE = 256;

export function makeSealer(store: Pick<BlobStore, "put" | "flush">, signer?: Signer): Sealer {
  return makeGroupSealer(store, {
    prepare: async (group) => (signer === undefined ? [] : attest(subjectsOf(group), signer)),
  });
}

/** The same for who has to do more, or to ask somebody, before a group is committed. */
export function makeGroupSealer<R extends Sealable>(
  store: Pick<BlobStore, "put" | "flush">,
  { enough, prepare }: GroupOptions<R>,
): Sealer<R> {
  let waiting: R[] = [];
  const commits = new GroupCommit({
    async commit() {
      const group = waiting;
      waiting = [];
      const attestations = await prepare(group);
      // Together, so that no flush of somebody else comes between a record and its signature.
      for (const { blobs } of group) for (const { kind, bytes } of blobs) store.put(kind, bytes);
      for (const { kind, bytes } of attestations) store.put(kind, bytes);
      await store.flush();
    },
    // Whatever is added in this turn of the event loop joins the first commit.
    gather: (start) => queueMicrotask(start),
    enough,
  });
  return {
    add(rollout, withinMs) {
      waiting.push(rollout);
      commits.add();
      return commits.flush(withinMs);
    },
  };
}

/** What a group is signed for. */
export function subjectsOf(group: readonly Sealable[]): Digest[] {
  const subjects = group.flatMap(({ envelope, blobs, others = [] }) => [
    envelope.digest,
    ...signedAmong(blobs),
    ...others,
  ]);
  return [...new Set(subjects)];
}

/** Of these blobs, those that a signature has to name. */
export function signedAmong(blobs: readonly UnsealedBlob[]): Digest[] {
  return blobs
    .filter(({ kind }) => isSignedKind(kind))
    .map(({ kind, bytes, digest }) => digest ?? digestBytes(kind, bytes));
}

/** The subjects of each attestation, sorted as it lists them. */
export function attestedTogether(subjects: readonly Digest[]): Digest[][] {
  const lists: Digest[][] = [];
  for (let i = 0; i < subjects.length; i += SUBJECTS_PER_SIGNATURE)
    lists.push(subjects.slice(i, i + SUBJECTS_PER_SIGNATURE).sort());
  return lists;
}

export function attest(subjects: readonly Digest[], signer: Signer): SealedBlob[] {
  return attestedTogether(subjects).map((list) => signer.attest(list));
}
