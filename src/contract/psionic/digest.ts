/** The psionic-v1 digests: SHA-256 hex over `|`-joined labels and values, f32 as four little-endian bytes. Kept only
 *  for compatibility: the joins are ambiguous and leave checkpoint, parent and number unbound. */
import { createHash, type Hash } from "node:crypto";
import type { PsionicArtifact, PsionicBatch, PsionicLineage, PsionicRevision } from "./schema.ts";

export function digestPsionicArtifact(artifact: Omit<PsionicArtifact, "artifact_digest">): string {
  const { environment, source_policy_revision: revision } = artifact;
  const hash = start("psionic_rollout_artifact", artifact.artifact_id);
  join(hash, "worker", artifact.worker_id, "env", `${environment.environment_ref}@${environment.version}`);
  join(hash, "task", artifact.task_id, "policy_family", revision.policy_family);
  join(hash, "revision", revision.revision_id, "policy_digest", revision.policy_digest);
  join(hash, "created_at_ms", artifact.created_at_ms, "termination", artifact.termination_reason);
  for (const { token_id, logprob, reward, advantage } of artifact.samples) {
    join(hash, "sample", token_id, f32(logprob), f32(reward), f32(advantage));
  }
  for (const { kind, digest, reference } of artifact.proof_references)
    join(hash, "proof", kind, digest, reference);
  return hash.digest("hex");
}

export function digestPsionicLineage(target: PsionicRevision, sources: readonly PsionicRevision[]): string {
  const hash = start("psionic_policy_lineage", target.policy_family);
  join(hash, "target", target.revision_id, target.policy_digest);
  for (const source of sources) join(hash, "source", source.revision_id, source.policy_digest);
  return hash.digest("hex");
}

export function digestPsionicBatch(
  batch: Omit<PsionicBatch, "batch_digest" | "policy_lineage"> & {
    policy_lineage: Pick<PsionicLineage, "lineage_digest">;
  },
): string {
  const hash = start("psionic_trainer_batch", batch.batch_id);
  join(hash, "lineage", batch.policy_lineage.lineage_digest);
  join(hash, "reward_sum", f32(batch.reward_sum), "advantage_sum", f32(batch.advantage_sum));
  join(hash, "token_count", batch.token_count, "assembled_at_ms", batch.assembled_at_ms);
  for (const id of batch.rollout_ids) join(hash, "rollout_id", id);
  for (const digest of batch.rollout_digests) join(hash, "rollout_digest", digest);
  for (const proof of batch.proof_references) join(hash, "proof", proof.digest);
  return hash.digest("hex");
}

/** Adds in order, rounding to f32 after every addition, as the original does. */
export function sumF32(values: Iterable<number>): number {
  let sum = 0;
  for (const value of values) sum = Math.fround(sum + value);
  return sum;
}

function start(label: string, id: string): Hash {
  return createHash("sha256").update(`${label}|${id}`);
}

function join(hash: Hash, ...parts: (string | number | bigint | Uint8Array)[]): void {
  for (const part of parts) {
    hash.update("|");
    hash.update(part instanceof Uint8Array ? part : String(part));
  }
}

function f32(value: number): Uint8Array {
  return new Uint8Array(Float32Array.of(value).buffer);
}
