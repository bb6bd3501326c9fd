/** The psionic-v1 records in the spelling of their JSON. u64 is a bigint here; f32 is a double with an exact f32 value.
 *  Refuses names that the psionic digest cannot distinguish (`|`, `@` and control characters). Refuses numbers that f32
 *  cannot hold. */
import * as z from "zod";
import { id } from "../codec/index.ts";

const MAX_U64 = 0xffff_ffff_ffff_ffffn;

/** A u64 as a JSON number of any size, or as a decimal string. */
const u64 = z
  .union([z.bigint(), z.number().int(), z.string().regex(/^(0|[1-9][0-9]{0,19})$/)])
  .transform((value, context) => {
    // A double past 2^53 has already lost digits; the JSON reader returns such integers as bigints.
    const wide = typeof value === "number" && !Number.isSafeInteger(value) ? -1n : BigInt(value);
    if (wide < 0n || wide > MAX_U64) context.addIssue({ code: "custom", message: "is not a u64" });
    return wide;
  });

/** serde writes NaN and infinity as null, so null stands for one of them. */
const f32 = z.union([z.number(), z.bigint(), z.null()]).transform((value, context) => {
  const rounded = value === null ? Number.NaN : Math.fround(Number(value));
  if (!Number.isFinite(rounded))
    context.addIssue({
      code: "custom",
      message: "is not a finite f32",
      params: { refusal: "non-finite-number" },
    });
  return rounded;
});

/** Digests and references are opaque to psionic. Only characters that make its `|`-joined digest ambiguous are
 *  refused. */
const opaque = z
  .string()
  .min(1)
  .max(4096)
  .refine((text) => text.isWellFormed() && !/[|\p{Cc}]/u.test(text), "holds | or a control character");

const u32 = z.number().int().min(0).max(0xffff_ffff);

const checkpoint = z.strictObject({
  checkpoint_family: id,
  stream_id: id,
  manifest_digest: opaque,
  object_digest: opaque,
  writer_node_id: id,
  membership_epoch: u64,
  cluster_state_digest: opaque,
  topology_digest: opaque,
  started_at_ms: u64,
  checkpoint_ref: z.optional(opaque),
  step: z.optional(u64),
  durable_at_ms: z.optional(u64),
});

export const psionicRevision = z.strictObject({
  policy_family: id,
  revision_id: id,
  revision_number: z.optional(u64),
  policy_digest: opaque,
  parent_revision_id: z.optional(id),
  checkpoint: z.optional(checkpoint),
  produced_at_ms: u64,
});
export type PsionicRevision = z.output<typeof psionicRevision>;

const psionicProof = z.strictObject({
  kind: z.enum(["execution_proof", "validator_bundle", "commitment"]),
  digest: opaque,
  reference: opaque,
});
export type PsionicProof = z.output<typeof psionicProof>;

const psionicTermination = z.enum([
  "completed",
  "max_tokens",
  "environment_error",
  "tool_error",
  "cancelled",
  "rejected",
]);
export type PsionicTermination = z.output<typeof psionicTermination>;

const sample = z.strictObject({ token_id: u32, logprob: f32, reward: f32, advantage: f32 });
export type PsionicSample = z.output<typeof sample>;

export const psionicArtifact = z.strictObject({
  artifact_id: id,
  worker_id: id,
  environment: z.strictObject({ environment_ref: id, version: id }),
  task_id: id,
  source_policy_revision: psionicRevision,
  samples: z.array(sample),
  termination_reason: psionicTermination,
  proof_references: z.array(psionicProof).default([]),
  created_at_ms: u64,
  artifact_digest: z.string(),
});
export type PsionicArtifact = z.output<typeof psionicArtifact>;

const psionicLineage = z.strictObject({
  target_revision: psionicRevision,
  source_revisions: z.array(psionicRevision),
  lineage_digest: z.string(),
});
export type PsionicLineage = z.output<typeof psionicLineage>;

export const psionicBatch = z.strictObject({
  batch_id: id,
  policy_lineage: psionicLineage,
  rollout_ids: z.array(id),
  rollout_digests: z.array(opaque),
  proof_references: z.array(psionicProof).default([]),
  rollout_count: u32,
  token_count: u64,
  reward_sum: f32,
  advantage_sum: f32,
  assembled_at_ms: u64,
  batch_digest: z.string(),
});
export type PsionicBatch = z.output<typeof psionicBatch>;
