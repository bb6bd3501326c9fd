/** Reads the drift of a batch's sources and counts its proofs of execution, for a reader of text.
 *  In: an open book, a batch. Out: both, without the part whose records are damaged or were erased. It reads every
 *  shard and rollout of the batch, so `showBatch` leaves it to the callers that print the result. */
import { type Digest, given, type Id, isRollbookError } from "../../base/index.ts";
import {
  BatchShard,
  Manifest,
  PolicyRevision,
  type RevisionKey,
  RolloutContent,
  RolloutEnvelope,
  type TrainerBatch,
} from "../../contract/index.ts";
import { driftFrom, isProven } from "../../keep/admit/index.ts";
import { readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import type { BatchDetails } from "./batches.ts";

export interface BatchEvidence {
  /** Drift of the sources whose distance from the target is known. */
  readonly drift?: ReadonlyMap<Id, number>;
  /** Rollouts of the batch, and how many of them the validator would find proven; undefined for a batch of many rows. */
  readonly proven?: { readonly rollouts: number; readonly withProof: number };
}

/** Most rows whose rollouts are read only to count those with a proof. */
const MOST_COUNTED = 5_000;

export async function readEvidence(
  book: OpenBook,
  { batch, lineage }: Pick<BatchDetails, "batch" | "lineage">,
): Promise<BatchEvidence> {
  const isCounted = batch.totals.rows <= MOST_COUNTED;
  return given({
    drift: await ifReadable(driftOf(book, batch, lineage.target.record)),
    proven: isCounted ? await ifReadable(provenIn(book, batch)) : undefined,
  });
}

/** Undefined if a record is missing or damaged. The batch can be shown without it; `verify` reports the damage. */
function ifReadable<T>(evidence: Promise<T>): Promise<T | undefined> {
  return evidence.catch((error) => {
    if (isRollbookError(error)) return undefined;
    throw error;
  });
}

/** Measured as the limits of the batch measure it: a sealed lineage knows only drift by numbers. */
async function driftOf(
  { store }: OpenBook,
  { manifest, bySource }: TrainerBatch,
  targetRecord: Digest,
): Promise<Map<Id, number>> {
  const target = await readRecord(store, PolicyRevision, targetRecord);
  const { revisions } = await readRecord(store, Manifest, manifest);
  const records = await Promise.all(revisions.map((each) => readRecord(store, PolicyRevision, each)));
  const revision = ({ id, digest }: RevisionKey) => {
    const same = records.filter(
      (each) => each.family === target.family && each.digest === digest && each.id === id,
    );
    return same.find(({ number, parent }) => number !== undefined || parent !== undefined) ?? same[0];
  };
  const drift = new Map<Id, number>();
  for (const { revision: key } of bySource) {
    const found = key.digest === target.digest ? 0 : driftFrom(key, { target, revision });
    if (found !== null) drift.set(key.id, found);
  }
  return drift;
}

async function provenIn({ store }: OpenBook, batch: TrainerBatch): Promise<BatchEvidence["proven"]> {
  const contents = new Set<Digest>();
  for (const { digest } of batch.shards)
    for (const { content } of (await readRecord(store, BatchShard, digest)).rows) contents.add(content);
  let withProof = 0;
  for (const artifact of (await readRecord(store, Manifest, batch.manifest)).artifacts) {
    if (!contents.has(artifact.content)) continue;
    const envelope = await readRecord(store, RolloutEnvelope, artifact.envelope);
    if (envelope.proofs.length === 0) continue;
    const content = await readRecord(store, RolloutContent, artifact.content);
    if (await isProven(content, envelope, (digest) => store.has(digest))) withProof++;
  }
  return { rollouts: contents.size, withProof };
}
