/** A policy at one point in time: its name, the hash of its weights, and its origin. */
import * as z from "zod";
import { type Digest, digestJson, type Id, parseId } from "../../base/index.ts";
import {
  count,
  defineRecord,
  digest,
  id,
  origin,
  type RecordOf,
  refuse,
  type Sealed,
  seal,
  text,
  timeMs,
  u64,
} from "../codec/index.ts";

/** Location of the weights. The cluster fields are absent for a checkpoint written by one process. */
const checkpointRef = z.strictObject({
  family: id,
  streamId: id,
  manifestDigest: digest,
  objectDigest: digest,
  startedAtMs: timeMs,
  ref: z.optional(text()),
  step: z.optional(u64),
  durableAtMs: z.optional(timeMs),
  writerNodeId: z.optional(id),
  membershipEpoch: z.optional(u64),
  clusterStateDigest: z.optional(digest),
  topologyDigest: z.optional(digest),
});
export type CheckpointRef = z.output<typeof checkpointRef>;

/** Name of the policy that made a sample. "The same revision" means the same digest, never the same name. */
export const revisionKey = z.strictObject({ id, digest });
export type RevisionKey = { id: Id; digest: Digest };

/** Kind under which the weights of a language model are hashed and stored. */
export const WEIGHTS_KIND = "rollbook.model-weights.v1";

export const PolicyRevision = defineRecord({
  kind: "rollbook.policy-revision.v1",
  summary:
    "One revision of a policy family: digest of its weights, parent, checkpoint, what it was trained on.",
  shape: {
    family: id,
    id,
    number: z.optional(u64),
    digest,
    parent: z.optional(revisionKey),
    checkpoint: z.optional(checkpointRef),
    training: z.optional(
      z.strictObject({
        batches: z.array(digest).max(10_000),
        /** Training data from outside a book: a file by the SHA-256 of its bytes, a replay store by its manifest. */
        datasets: z.optional(
          z.array(z.strictObject({ kind: z.enum(["file", "replay-store"]), digest })).max(10_000),
        ),
        configDigest: z.optional(digest),
        seed: u64,
        steps: z.optional(count),
      }),
    ),
    producedAtMs: timeMs,
    origin: z.optional(origin),
  },
  references: (revision) => [
    ...(revision.checkpoint
      ? [
          {
            digest: revision.checkpoint.objectDigest,
            kind: "",
            field: "checkpoint.objectDigest",
            external: true,
            what: `checkpoint of ${revision.id}`,
          },
        ]
      : []),
    ...(revision.training?.batches ?? []).map((batch, i) => ({
      digest: batch,
      kind: "rollbook.trainer-batch.v1",
      field: `training.batches[${i}]`,
    })),
  ],
  check({ id: name, parent }) {
    if (parent?.id === name)
      throw refuse(
        "revision-conflict",
        { revision: name },
        `revision ${name} cannot be its own parent. Give the new revision a new id.`,
      );
  },
});
export type PolicyRevision = RecordOf<typeof PolicyRevision>;

/** A revision of which only the name is known. The producer is not recorded, and the time is 0. */
export function nameRevision(family: Id, { id: name, digest: weights }: RevisionKey): Sealed<PolicyRevision> {
  return seal(PolicyRevision, { family, id: name, digest: weights, producedAtMs: 0 });
}

/** True of a record that only names a revision: it knows neither the parent nor the training. */
export function isOnlyLogged({ producedAtMs }: Pick<PolicyRevision, "producedAtMs">): boolean {
  return producedAtMs === 0;
}

/** Family of imported decisions that name no family. */
export const IMPORTED_FAMILY = parseId("imported");

/** The behaviour policy of an imported log. Its weights are unknown: the digest only stands for the log's family. */
export function loggedPolicy(family: Id): Sealed<PolicyRevision> {
  return nameRevision(family, {
    id: parseId("logged"),
    digest: digestJson("rollbook.logged-policy.v1", family),
  });
}

type ProducedRevision = { digest: Digest; record: { producedAtMs: number } };

/** Chooses among several records of one revision. A revision may be produced twice. A collector that knows only the
 *  name logs it with production time 0. A record with a production time wins, then the smaller digest; the order of
 *  arrival has no effect. */
export function standsBefore(a: ProducedRevision, b: ProducedRevision): boolean {
  const [aKnows, bKnows] = [!isOnlyLogged(a.record), !isOnlyLogged(b.record)];
  return aKnows === bKnows ? a.digest < b.digest : aKnows;
}

type Numbered = { family: string; number?: bigint | undefined };

/** Number of revisions that `source` is behind `target`; undefined if unknown. */
export function revisionDrift(target: Numbered, source: Numbered): bigint | undefined {
  if (target.family !== source.family || target.number === undefined || source.number === undefined)
    return undefined;
  return target.number >= source.number ? target.number - source.number : undefined;
}

/** Fields that link a revision to `parent`: the next number, and the parent's digest. The first revision has number
 *  1. */
export function succeeding(
  parent: Pick<PolicyRevision, "id" | "digest" | "number"> | undefined,
): Pick<PolicyRevision, "number" | "parent"> {
  if (parent === undefined) return { number: 1n };
  const { id, digest, number } = parent;
  return { ...(number === undefined ? {} : { number: number + 1n }), parent: { id, digest } };
}
