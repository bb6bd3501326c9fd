/** Seals weights that a trainer outside of Rollbook wrote, as a revision with its lineage.
 *  In: an open book, the bytes of a weights file, what they were trained from. Out: the sealed revision; weights and record
 *  enter the book together. The same weights under the same name are sealed once. Does not read the weights. */
import { type Digest, digestBytes, parseId, RollbookError, short } from "../../base/index.ts";
import {
  PolicyRevision,
  type Sealed,
  seal,
  succeeding,
  TrainerBatch,
  WEIGHTS_KIND,
} from "../../contract/index.ts";
import { readSealed } from "../../keep/admit/index.ts";
import type { TrainingDataset } from "../../policy/index.ts";
import { makeSealer, readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";

interface SealWeightsRequest {
  readonly weights: Uint8Array;
  readonly family: string;
  readonly id: string;
  /** What the weights were trained from (default: nothing, the first of its family). */
  readonly parent?: Sealed<PolicyRevision> | undefined;
  readonly batches?: readonly Digest[] | undefined;
  readonly datasets?: readonly TrainingDataset[] | undefined;
  /** Of the trainer's options. */
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
  const known = await knownRevision(book, { family, id, digest });
  if (known !== undefined) return known;
  const revision = seal(PolicyRevision, {
    ...{ family, id, digest, producedAtMs: book.clock.nowMs() },
    ...succeeding(parent?.record),
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

/** Weights taught by a batch of another policy, or after a parent of another, would be a lineage that says nothing. */
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

async function knownRevision(
  book: OpenBook,
  { family, id, digest }: { family: string; id: string; digest: Digest },
): Promise<Sealed<PolicyRevision> | undefined> {
  for (const each of (await book.index()).ofKind(PolicyRevision.kind)) {
    if (each.family !== family || each.id !== id) continue;
    const known = await readSealed((one) => book.store.get(one), PolicyRevision, each.digest);
    if (known.record.digest !== digest)
      throw new RollbookError(
        "revision-exists",
        { family, id, known: known.record.digest, made: digest },
        `the book has a revision ${id} of ${family} with other weights (${short(known.record.digest)}). Give the new one another --id.`,
      );
    // One that was only logged does not know what it was trained from.
    if (known.record.producedAtMs > 0) return known;
  }
  return undefined;
}
