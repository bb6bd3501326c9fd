/** The psionic-v1 vectors that two independent implementations agree on: two artifacts, their lineage, one batch. */
import type { makePsionicArtifact } from "../../src/contract/psionic/index.ts";

type ArtifactFields = Parameters<typeof makePsionicArtifact>[0];

const environment = { environment_ref: "env.weather", version: "1" };

export function psionicRevisionFields(number: number) {
  return {
    policy_family: "train.decoder",
    revision_id: `policy-r${number}`,
    policy_digest: `digest-r${number}`,
    produced_at_ms: 1000 + number,
  };
}

export const ROLLOUT_A: ArtifactFields = {
  artifact_id: "rollout-a",
  worker_id: "worker-a",
  environment,
  task_id: "task-paris",
  source_policy_revision: psionicRevisionFields(1),
  samples: [
    { token_id: 101, logprob: -0.2, reward: 0.4, advantage: 0.3 },
    { token_id: 202, logprob: -0.3, reward: 0.1, advantage: 0.2 },
  ],
  termination_reason: "completed",
  proof_references: [{ kind: "execution_proof", digest: "proof-a", reference: "exec://proof-a" }],
  created_at_ms: 1100,
};

export const ROLLOUT_B: ArtifactFields = {
  artifact_id: "rollout-b",
  worker_id: "worker-b",
  environment,
  task_id: "task-berlin",
  source_policy_revision: psionicRevisionFields(2),
  samples: [
    { token_id: 303, logprob: -0.1, reward: 0.2, advantage: 0.05 },
    { token_id: 404, logprob: -0.4, reward: -0.1, advantage: -0.02 },
  ],
  termination_reason: "max_tokens",
  proof_references: [
    { kind: "execution_proof", digest: "proof-b", reference: "exec://proof-b" },
    { kind: "validator_bundle", digest: "validator-1", reference: "validator://bundle-1" },
  ],
  created_at_ms: 1110,
};

export const DIGESTS = {
  rolloutA: "44c316328f3a739385223529ffdbbb1408879b40bef6701359febf7ae1c8f4a0",
  rolloutB: "cbfe99198c508a5ec062533c84b56f39fed8e9c5477222934574260859d6ae06",
  lineage: "9c75310cc0ea0c28ae20c7d416c62192d1c9496267736991d79eaa97bf73f8eb",
  batch: "86059511507c8d14bfe6bbf66d9ae55c9a395c854e8c6c2994d94d7fa64637a8",
} as const;
