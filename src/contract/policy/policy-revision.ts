/** A policy at one point of its life: who it is, what its weights hash to, where it came from. */
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

/** Where the weights are. The cluster fields are absent for a checkpoint written by one process. */
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

/** How a sample names the policy that made it: "the same revision" means the same digest, never the same name. */
export const revisionKey = z.strictObject({ id, digest });
export type RevisionKey = { id: Id; digest: Digest };

/** The kind under which the weights of a language model are hashed and stored. */
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
        /** What was learned from outside a book: a file by the SHA-256 of its bytes, a replay store by its manifest. */
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

/** A revision known by its name alone: who produced it, and when, is not recorded (0). */
export function nameRevision(family: Id, { id: name, digest: weights }: RevisionKey): Sealed<PolicyRevision> {
  return seal(PolicyRevision, { family, id: name, digest: weights, producedAtMs: 0 });
}

/** The family of imported decisions that name none. */
export const IMPORTED_FAMILY = parseId("imported");

/** The policy behind a log that came from elsewhere. Its weights are unknown: the digest names the log's family, and claims
 *  no more. */
export function loggedPolicy(family: Id): Sealed<PolicyRevision> {
  return nameRevision(family, {
    id: parseId("logged"),
    digest: digestJson("rollbook.logged-policy.v1", family),
  });
}

type ProducedRevision = { digest: Digest; record: { producedAtMs: number } };

/** Several records may describe one revision: produced twice, or logged by a collector that knows its name alone and so
 *  not when it was produced (0). What knows more stands for all, then the smaller digest, whatever came first. */
export function standsBefore(a: ProducedRevision, b: ProducedRevision): boolean {
  const [aKnows, bKnows] = [a.record.producedAtMs > 0, b.record.producedAtMs > 0];
  return aKnows === bKnows ? a.digest < b.digest : aKnows;
}

type Numbered = { family: string; number?: bigint | undefined };

/** How many revisions `source` is behind `target`; undefined where that is unknowable. */
export function revisionDrift(target: Numbered, source: Numbered): bigint | undefined {
  if (target.family !== source.family || target.number === undefined || source.number === undefined)
    return undefined;
  return target.number >= source.number ? target.number - source.number : undefined;
}

/** How a revision follows `parent`: numbered one up, and bound to its digest. The first has number 1. */
export function succeeding(
  parent: Pick<PolicyRevision, "id" | "digest" | "number"> | undefined,
): Pick<PolicyRevision, "number" | "parent"> {
  if (parent === undefined) return { number: 1n };
  const { id, digest, number } = parent;
  return { ...(number === undefined ? {} : { number: number + 1n }), parent: { id, digest } };
}
