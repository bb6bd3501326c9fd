/** Cuts a batch from what a book holds: collects the manifest, assembles, writes, signs.
 *  In: artifacts and a target. Out: the sealed batch. A refused batch leaves no record behind. */
import type { Digest } from "../base/index.ts";
import {
  type BatchOptions,
  Feedback,
  type Manifest,
  PolicyRevision,
  Receipt,
  Release,
  type Sealed,
  type Selection,
  type Signer,
  sealManifest,
  TrainerBatch,
  Verdict,
} from "../contract/index.ts";
import { assembleBatch } from "../keep/batch/index.ts";
import type { BlobStore } from "../store/index.ts";
import type { BookIndex } from "./find/book-index.ts";
import type { Artifact } from "./find/resolve.ts";

export interface AssembleInBook {
  readonly store: Pick<BlobStore, "get" | "put" | "flush">;
  readonly index: BookIndex;
  readonly artifacts: readonly Artifact[];
  /** The record of the revision the batch is meant to improve. */
  readonly target: Digest;
  readonly selection: Pick<Selection, "level"> & { family?: Selection["family"] };
  readonly options: Partial<BatchOptions>;
  readonly seed: bigint;
  readonly signer?: Signer | undefined;
  readonly onProgress?: (done: number, total: number) => void;
}

export async function assembleInBook(request: AssembleInBook): Promise<Sealed<TrainerBatch>> {
  const { store, signer, onProgress } = request;
  const manifest = collectManifest(request.index, request.artifacts);
  const batch = await assembleBatch({
    read: async (digest) => (digest === manifest.digest ? manifest : store.get(digest)),
    write(blob) {
      // The manifest stands by itself in the book, so it enters only with the batch that makes sense of it.
      if (blob.kind === TrainerBatch.kind) store.put(manifest.kind, manifest.bytes);
      store.put(blob.kind, blob.bytes);
    },
    manifest: manifest.digest,
    target: request.target,
    selection: request.selection,
    options: request.options,
    seed: request.seed,
    ...(onProgress === undefined ? {} : { onProgress }),
  });
  const attestation = signer?.attest([manifest.digest, batch.digest]);
  if (attestation !== undefined) store.put(attestation.kind, attestation.bytes);
  await store.flush();
  return batch;
}

/** These artifacts, every revision of the book, and whatever has been said about the artifacts: by validators, by those
 *  who release, by users, and when they were submitted. */
export function collectManifest(index: BookIndex, artifacts: readonly Artifact[]): Sealed<Manifest> {
  const chosen = new Set<unknown>(artifacts.map(({ content }) => content.digest));
  const about = (kind: string) =>
    index
      .ofKind(kind)
      .filter(({ fields }) => chosen.has(fields.subject))
      .map(({ digest }) => digest);
  return sealManifest({
    // A content that was run twice counts once; the smaller envelope stands for both, whatever came first.
    artifacts: artifacts.map(({ content, envelopes }) => ({
      content: content.digest,
      envelope: envelopes[0]!,
    })),
    revisions: index.ofKind(PolicyRevision.kind).map(({ digest }) => digest),
    verdicts: about(Verdict.kind),
    releases: about(Release.kind),
    feedback: about(Feedback.kind),
    receipts: about(Receipt.kind),
  });
}
