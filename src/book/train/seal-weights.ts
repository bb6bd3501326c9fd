/** Seals weights that a trainer outside of Rollbook wrote, as a revision with its lineage.
 *  In: an open book, the bytes of a weights file, their parent and batches. Out: the sealed revision; weights and
 *  record enter the book together. The same weights with the same name and parent are sealed once. Does not
 *  parse the weights. */
import { type Digest, digestBytes, parseId, RollbookError, short } from "../../base/index.ts";
import {
  PolicyRevision,
  type Sealed,
  seal,
  succeeding,
  TrainerBatch,
  WEIGHTS_KIND,
} from "../../contract/index.ts";
import type { TrainingDataset } from "../../policy/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import { knownRevision } from "./known-revision.ts";

interface SealWeightsRequest {
  readonly weights: Uint8Array;
  readonly family: string;
  readonly id: string;
  /** Revision that the weights were trained from (default: none, the first of its family). */
  readonly parent?: Sealed<PolicyRevision> | undefined;
  readonly batches?: readonly Digest[] | undefined;
  readonly datasets?: readonly TrainingDataset[] | undefined;
  /** Digest of the trainer's options. */
  readonly config?: Digest | undefined;
  readonly seed?: bigint | undefined;
  readonly steps?: number | undefined;
}

export async function sealWeights(
  book: OpenBook,
  request: SealWeightsRequest,
): Promise<Sealed<PolicyRevision>> {
  const { weights, parent, batches = [], datasets = [], config, steps, seed = 0n } = request;
  const family = parseId(request.family, "family");
  const id = parseId(request.id, "revision id");
  const digest = digestBytes(WEIGHTS_KIND, weights);
  await requireFit(book, { family, parent, batches });
  const lineage = succeeding(parent?.record);
  const known = await knownRevision(book, { family, id, digest, ...lineage });
  if (known !== undefined) return known;
  const revision = seal(PolicyRevision, {
    ...{ family, id, digest, producedAtMs: book.clock.nowMs() },
    ...lineage,
    checkpoint: {
      ...{ family, streamId: id, manifestDigest: config ?? digest, objectDigest: digest },
      startedAtMs: book.clock.nowMs(),
    },
    ...(batches.length + datasets.length === 0
      ? {}
      : {
          training: {
            batches: [...batches],
            ...(datasets.length === 0 ? {} : { datasets: [...datasets] }),
            ...(config === undefined ? {} : { configDigest: config }),
            seed,
            ...(steps === undefined ? {} : { steps }),
          },
        }),
  });
  await makeSealer(book.store, book.signer).add({
    envelope: revision,
    blobs: [{ kind: WEIGHTS_KIND, bytes: weights }, revision],
  });
  return revision;
}

/** Refuses a batch or a parent of another policy: such a lineage would be meaningless. */
async function requireFit(
  book: OpenBook,
  {
    family,
    parent,
    batches,
  }: { family: string } & Pick<SealWeightsRequest, "parent"> & { batches: readonly Digest[] },
): Promise<void> {
  const others = [
    ...(parent === undefined ? [] : [{ what: `its parent ${parent.record.id}`, of: parent.record.family }]),
    ...(await Promise.all(
      batches.map(async (each) => ({
        what: `batch ${short(each)}`,
        of: (await readRecord(book.store, TrainerBatch, each)).selection.family,
      })),
    )),
  ];
  const other = others.find(({ of }) => of !== family);
  if (other !== undefined)
    throw new RollbookError(
      "policy-family-mismatch",
      { expected: family, actual: other.of },
      `the revision is of ${family}, ${other.what} of ${other.of}. Name a batch and a parent of ${family}.`,
    );
}
