/** Seals rollouts (and other signed records) durably: one signature and one fsync for all that wait.
 *  In: sealed records. Out: a promise for each, resolved when it is durable and signed. A commit starts when the
 *  previous one has ended. A rollout without a waiting client may wait briefly for others. */
import { type Digest, digestBytes } from "../base/index.ts";
import type { SealedBlob, Signer } from "../contract/index.ts";
import type { Blob, BlobStore } from "./blob/index.ts";
import { isSignedKind } from "./catalog/index.ts";
import { GroupCommit } from "./disk/index.ts";

/** A sealed rollout, or another record in place of its envelope. The envelope is signed, and so is every blob of a kind
 *  that requires it. */
export interface Sealable {
  readonly envelope: { readonly digest: Digest };
  readonly blobs: readonly UnsealedBlob[];
  /** Digests to sign as well; their blobs were put before. */
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
  /** Makes the signatures of a group, and does all other work that must precede storing the group. */
  prepare(group: readonly R[]): Promise<readonly SealedBlob[]>;
}

/** An attestation lists its subjects. The limit keeps it small enough to travel with any of them. */
export const SUBJECTS_PER_SIGNATURE = 256;

export function makeSealer(store: Pick<BlobStore, "put" | "flush">, signer?: Signer): Sealer {
  return makeGroupSealer(store, {
    prepare: async (group) => (signer === undefined ? [] : attest(subjectsOf(group), signer)),
  });
}

/** As makeSealer, for callers that need an asynchronous step before a group is committed. */
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
      // Put them together, so that no other flush comes between a record and its signature.
      for (const { blobs } of group) for (const { kind, bytes } of blobs) store.put(kind, bytes);
      for (const { kind, bytes } of attestations) store.put(kind, bytes);
      await store.flush();
    },
    // Everything added in this turn of the event loop joins the first commit.
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

/** Digests that the signature of a group covers. */
export function subjectsOf(group: readonly Sealable[]): Digest[] {
  const subjects = group.flatMap(({ envelope, blobs, others = [] }) => [
    envelope.digest,
    ...signedAmong(blobs),
    ...others,
  ]);
  return [...new Set(subjects)];
}

/** Digests of those blobs that a signature has to name. */
export function signedAmong(blobs: readonly UnsealedBlob[]): Digest[] {
  return blobs
    .filter(({ kind }) => isSignedKind(kind))
    .map(({ kind, bytes, digest }) => digest ?? digestBytes(kind, bytes));
}

/** Subjects of each attestation, sorted as the attestation lists them. */
export function attestedTogether(subjects: readonly Digest[]): Digest[][] {
  const lists: Digest[][] = [];
  for (let i = 0; i < subjects.length; i += SUBJECTS_PER_SIGNATURE)
    lists.push(subjects.slice(i, i + SUBJECTS_PER_SIGNATURE).sort());
  return lists;
}

export function attest(subjects: readonly Digest[], signer: Signer): SealedBlob[] {
  return attestedTogether(subjects).map((list) => signer.attest(list));
}
