/** psionic-v1 trainer batches: assembled as in the original, in input order, and checked on every read. Stricter in one
 *  point: a revision id with two policy digests is refused. The original keeps the last digest. */
import { compareUtf8 } from "../../base/index.ts";
import { refuse } from "../codec/index.ts";
import { checkPsionicArtifact, requirePsionicDigest } from "./artifact.ts";
import { digestPsionicBatch, digestPsionicLineage, sumF32 } from "./digest.ts";
import type {
  PsionicArtifact,
  PsionicBatch,
  PsionicLineage,
  PsionicProof,
  PsionicRevision,
} from "./schema.ts";

interface PsionicBatchParts {
  batchId: PsionicBatch["batch_id"];
  target: PsionicRevision;
  rollouts: readonly PsionicArtifact[];
  assembledAtMs: bigint;
}

export function assemblePsionicBatch(parts: PsionicBatchParts): PsionicBatch {
  const { batchId, target, rollouts } = parts;
  requireRollouts(batchId, rollouts.length);
  requireFamilies(parts);
  for (const rollout of rollouts) checkPsionicArtifact(rollout);
  const proofs = new Map<string, PsionicProof>();
  for (const proof of rollouts.flatMap((rollout) => rollout.proof_references)) {
    if (!proofs.has(proof.digest)) proofs.set(proof.digest, proof);
  }
  const fields = {
    batch_id: batchId,
    policy_lineage: makePsionicLineage(
      target,
      rollouts.map((rollout) => rollout.source_policy_revision),
    ),
    rollout_ids: rollouts.map((rollout) => rollout.artifact_id),
    rollout_digests: rollouts.map((rollout) => rollout.artifact_digest),
    proof_references: [...proofs.values()].sort((a, b) => compareUtf8(a.digest, b.digest)),
    rollout_count: rollouts.length,
    token_count: BigInt(rollouts.reduce((total, rollout) => total + rollout.samples.length, 0)),
    reward_sum: sumF32(rollouts.map((rollout) => sumF32(rollout.samples.map((sample) => sample.reward)))),
    advantage_sum: sumF32(
      rollouts.map((rollout) => sumF32(rollout.samples.map((sample) => sample.advantage))),
    ),
    assembled_at_ms: parts.assembledAtMs,
  };
  return { ...fields, batch_digest: digestPsionicBatch(fields) };
}

/** Sources may repeat. The lineage holds them unique by revision id, sorted by the UTF-8 bytes of the id. */
export function makePsionicLineage(
  target: PsionicRevision,
  sources: readonly PsionicRevision[],
): PsionicLineage {
  const unique = new Map<string, PsionicRevision>();
  for (const source of sources) {
    if (source.policy_family !== target.policy_family)
      throw refuse(
        "policy-family-mismatch",
        {
          revision: source.revision_id,
          expected: target.policy_family,
          actual: source.policy_family,
        },
        `revision ${source.revision_id} is of family ${source.policy_family}, the lineage targets ${target.policy_family}.`,
      );
    const known = unique.get(source.revision_id);
    requireSameDigest(known ?? source, source);
    if (source.revision_id === target.revision_id) requireSameDigest(target, source);
    unique.set(source.revision_id, source);
  }
  const sorted = [...unique.values()].sort((a, b) => compareUtf8(a.revision_id, b.revision_id));
  return {
    target_revision: target,
    source_revisions: sorted,
    lineage_digest: digestPsionicLineage(target, sorted),
  };
}

/** Checks the consistency of a batch and, if its artifacts are given, compares the batch with them. */
export function checkPsionicBatch(batch: PsionicBatch, rollouts?: readonly PsionicArtifact[]): PsionicBatch {
  const { target_revision: target, source_revisions: sources, lineage_digest } = batch.policy_lineage;
  requireRollouts(batch.batch_id, batch.rollout_ids.length);
  const lineage = makePsionicLineage(target, sources);
  if (lineage.source_revisions.some((source, i) => source !== sources[i]) || !isSortedByDigest(batch))
    throw refuse(
      "bad-record",
      { batch: batch.batch_id },
      `psionic batch ${batch.batch_id}: source revisions or proofs are not unique and sorted. Assemble it again.`,
    );
  if (new Set(batch.rollout_ids).size !== batch.rollout_ids.length)
    throw refuse(
      "duplicate-artifact",
      { batch: batch.batch_id },
      `psionic batch ${batch.batch_id} names an artifact twice. List it once.`,
    );
  if (
    batch.rollout_ids.length !== batch.rollout_count ||
    batch.rollout_digests.length !== batch.rollout_count
  )
    throw refuse(
      "length-mismatch",
      { batch: batch.batch_id, expected: batch.rollout_count, actual: batch.rollout_ids.length },
      `psionic batch ${batch.batch_id} counts ${batch.rollout_count} rollouts and lists ${batch.rollout_ids.length} ids and ${batch.rollout_digests.length} digests.`,
    );
  requirePsionicDigest(`lineage of batch ${batch.batch_id}`, lineage_digest, lineage.lineage_digest);
  requirePsionicDigest(`batch ${batch.batch_id}`, batch.batch_digest, digestPsionicBatch(batch));
  if (rollouts !== undefined) {
    const parts = { batchId: batch.batch_id, target, rollouts, assembledAtMs: batch.assembled_at_ms };
    const again = assemblePsionicBatch(parts).batch_digest;
    requirePsionicDigest(`batch ${batch.batch_id} (assembled again)`, batch.batch_digest, again);
  }
  return batch;
}

function requireRollouts(batchId: string, count: number): void {
  if (count === 0)
    throw refuse("empty-batch", { batch: batchId }, `psionic batch ${batchId} holds no rollout. Select one.`);
}

/** Checks the family before duplicates, rollout by rollout, in the order of the original. */
function requireFamilies({ batchId, target, rollouts }: PsionicBatchParts): void {
  const seen = new Set<string>();
  for (const { artifact_id, source_policy_revision } of rollouts) {
    const [expected, actual] = [target.policy_family, source_policy_revision.policy_family];
    if (actual !== expected)
      throw refuse(
        "policy-family-mismatch",
        { batch: batchId, artifact: artifact_id, expected, actual },
        `psionic batch ${batchId} targets family ${expected}, artifact ${artifact_id} is of ${actual}. Batch each family by itself.`,
      );
    if (seen.has(artifact_id))
      throw refuse(
        "duplicate-artifact",
        { batch: batchId, artifact: artifact_id },
        `psionic batch ${batchId} names the artifact ${artifact_id} twice. List it once.`,
      );
    seen.add(artifact_id);
  }
}

function requireSameDigest(known: PsionicRevision, other: PsionicRevision): void {
  if (known.policy_digest === other.policy_digest) return;
  throw refuse(
    "revision-conflict",
    { revision: other.revision_id, digests: [known.policy_digest, other.policy_digest] },
    `revision ${other.revision_id} appears with two digests, ${known.policy_digest} and ${other.policy_digest}. New weights need a new revision id.`,
  );
}

function isSortedByDigest({ proof_references: proofs }: PsionicBatch): boolean {
  return proofs.every((proof, i) => i === 0 || compareUtf8(proofs[i - 1]!.digest, proof.digest) < 0);
}
