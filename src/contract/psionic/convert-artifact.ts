/** Converts psionic-v1 artifacts to rollout drafts and back. From psionic only the sign of a zero is lost: fields that
 *  our records cannot express travel in their `origin`. To psionic much is lost (seed, group, prompt, mask, turns,
 *  calls, scores); `lost` names each field. */
import { canonicalize } from "../../base/index.ts";
import { refuse } from "../codec/index.ts";
import type { PolicyRevision } from "../policy/index.ts";
import type { Ending, FailureOwner, LogprobKind, Proof, RolloutDraft } from "../rollout/index.ts";
import type { EnvironmentKey } from "../task/index.ts";
import { makePsionicArtifact } from "./artifact.ts";
import {
  fromPsionicRevision,
  type KeptTexts,
  keepDigest,
  keptIn,
  originOf,
  restoreDigest,
  toPsionicRevision,
  toTime,
} from "./convert-revision.ts";
import type { PsionicArtifact, PsionicProof, PsionicSample, PsionicTermination } from "./schema.ts";

/** Facts that psionic does not record and the caller has to supply. */
interface PsionicContext {
  logprobKind: LogprobKind;
  dataSource: RolloutDraft["dataSource"];
  /** 0 if unknown. */
  seed?: bigint;
}

export function fromPsionicArtifact(
  artifact: PsionicArtifact,
  context: PsionicContext,
): { draft: RolloutDraft; revision: Omit<PolicyRevision, "schema"> } {
  const kept: KeptTexts = {};
  const revision = fromPsionicRevision(artifact.source_policy_revision);
  const { samples } = artifact;
  const at = toTime(artifact.created_at_ms, "created_at_ms");
  const proofs = artifact.proof_references.map((proof, i) => fromProof(proof, `proof_references.${i}`, kept));
  const { environment_ref, version } = artifact.environment;
  const draft: RolloutDraft = {
    rolloutId: artifact.artifact_id,
    environment: `${environment_ref}@${version}` as EnvironmentKey,
    task: { id: artifact.task_id },
    seed: context.seed ?? 0n,
    dataSource: context.dataSource,
    sampling: {},
    calls: [],
    streams: [
      {
        level: "token",
        family: revision.family,
        logprobKind: context.logprobKind,
        revision: { id: revision.id, digest: revision.digest },
        ids: Uint32Array.from(samples, (sample) => sample.token_id),
        logprobs: Float32Array.from(samples, (sample) => sample.logprob),
        rewards: Float32Array.from(samples, (sample) => sample.reward),
        advantages: Float32Array.from(samples, (sample) => sample.advantage),
      },
    ],
    scores: [],
    ending: ENDINGS[artifact.termination_reason],
    envelope: {
      worker: artifact.worker_id,
      startedAtMs: at,
      endedAtMs: at,
      proofs,
      ...originOf(kept),
    },
  };
  return { draft, revision };
}

/** Refuses rollouts that psionic cannot express: no token stream of the revision's family, a hot swap, no rewards. */
export function toPsionicArtifact(
  draft: RolloutDraft,
  revision: PolicyRevision,
): { artifact: PsionicArtifact; lost: string[] } {
  const { stream, samples, lost } = toSamples(draft, revision);
  const source = toPsionicRevision(revision);
  const kept = keptIn(draft.envelope.origin);
  const termination = toTermination(draft.ending);
  if (canonicalize(ENDINGS[termination]) !== canonicalize(draft.ending)) lost.push("ending");
  if (draft.envelope.startedAtMs !== draft.envelope.endedAtMs) lost.push("envelope.startedAtMs");
  lost.push(...absentThere(draft), ...absentThere(draft.task, "task."), ...absentThere(stream, "stream."));
  lost.push(...absentThere(draft.envelope, "envelope."));
  lost.push(...source.lost.map((name) => `revision.${name}`));
  const [environment_ref = "", version = ""] = draft.environment.split("@");
  const artifact = makePsionicArtifact({
    artifact_id: draft.rolloutId,
    worker_id: draft.envelope.worker,
    environment: { environment_ref, version },
    task_id: draft.task.id,
    source_policy_revision: source.revision,
    samples,
    termination_reason: termination,
    proof_references: (draft.envelope.proofs ?? []).map((proof, i) =>
      toProof(proof, `proof_references.${i}`, kept),
    ),
    created_at_ms: BigInt(draft.envelope.endedAtMs),
  });
  return { artifact, lost };
}

/** An environment error belongs to the task, a tool error to the sandbox. A rejection gives no evidence about the
 *  policy. */
const ENDINGS: Readonly<Record<PsionicTermination, Ending>> = {
  completed: { kind: "terminal" },
  max_tokens: { kind: "truncated", limit: "tokens" },
  environment_error: { kind: "failed", owner: "task", message: "environment_error" },
  tool_error: { kind: "failed", owner: "sandbox", message: "tool_error" },
  cancelled: { kind: "cancelled" },
  rejected: { kind: "failed", owner: "infrastructure", message: "rejected" },
};

const TERMINATION_BY_OWNER: Readonly<Record<FailureOwner, PsionicTermination>> = {
  agent: "environment_error",
  task: "environment_error",
  provider: "environment_error",
  sandbox: "tool_error",
  infrastructure: "rejected",
};

function toTermination(ending: Ending): PsionicTermination {
  switch (ending.kind) {
    case "terminal":
      return "completed";
    case "truncated":
      return "max_tokens";
    case "cancelled":
      return "cancelled";
    case "failed":
      return TERMINATION_BY_OWNER[ending.owner];
    default:
      return ending satisfies never;
  }
}

type DraftedTokens = Extract<RolloutDraft["streams"][number], { level: "token" }>;

function toSamples(draft: RolloutDraft, revision: PolicyRevision) {
  const cannot = (why: string) =>
    refuse(
      "bad-record",
      { rollout: draft.rolloutId },
      `rollout ${draft.rolloutId} cannot be written as psionic-v1: ${why}.`,
    );
  const streams = draft.streams.filter(
    (item): item is DraftedTokens => item.level === "token" && item.family === revision.family,
  );
  const [stream] = streams;
  if (stream === undefined || streams.length > 1)
    throw cannot(`it has ${streams.length} token streams of family ${revision.family}, not one`);
  for (const made of stream.segments?.map((segment) => segment.revision) ?? [stream.revision]) {
    if (made?.id !== revision.id || made.digest !== revision.digest)
      throw cannot(`revision ${made?.id} made some of its tokens, not ${revision.id} alone`);
  }
  const { rewards, advantages, mask } = stream;
  if (rewards === undefined) throw cannot("its rewards are unlabelled, and an invented 0 is no reward");
  const lost = draft.streams.length > 1 ? ["streams of other families or levels"] : [];
  if (advantages === undefined) lost.push("the absence of advantages (written as 0)");
  const samples: PsionicSample[] = [];
  for (let i = 0; i < stream.ids.length; i++) {
    if (mask !== undefined && mask[i] === 0) continue;
    samples.push({
      token_id: stream.ids[i]!,
      logprob: stream.logprobs[i]!,
      reward: rewards[i]!,
      advantage: advantages?.[i] ?? 0,
    });
  }
  if (samples.length < stream.ids.length) lost.push("tokens the policy only read");
  return { stream, samples, lost };
}

const CARRIED = new Set([
  ...["schema", "rolloutId", "environment", "task", "streams", "ending", "contentDigest", "envelopeDigest"],
  ...["level", "family", "revision", "segments", "ids", "logprobs", "rewards", "advantages", "mask"],
  ...["envelope", "worker", "startedAtMs", "endedAtMs", "proofs", "origin", "id"],
]);

/** Members that carry information and have no equivalent in psionic-v1. */
function absentThere(value: object, prefix = ""): string[] {
  return Object.entries(value)
    .filter(([name, item]) => !CARRIED.has(name) && item !== undefined && !isEmpty(item))
    .map(([name]) => prefix + name);
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

const PROOF_KINDS = { execution_proof: "execution", validator_bundle: "validator-bundle" } as const;

/** A psionic commitment has no nonce to check it with. It becomes a reference that remembers its kind. */
function fromProof(proof: PsionicProof, field: string, kept: KeptTexts): Proof {
  const digest = keepDigest(kept, `${field}.digest`, proof.digest);
  if (proof.kind === "commitment") kept[`${field}.kind`] = proof.kind;
  const kind = proof.kind === "commitment" ? "execution" : PROOF_KINDS[proof.kind];
  return { kind, digest, reference: proof.reference };
}

function toProof(proof: Proof, field: string, kept: Readonly<KeptTexts>): PsionicProof {
  const digest = restoreDigest(kept, `${field}.digest`, proof.digest);
  switch (proof.kind) {
    case "call-log":
      return { kind: "execution_proof", digest, reference: "rollbook:call-log" };
    case "commitment":
      return { kind: "commitment", digest, reference: `rollbook:nonce:${proof.nonce}` };
    case "execution":
      return {
        kind: kept[`${field}.kind`] === "commitment" ? "commitment" : "execution_proof",
        digest,
        reference: proof.reference,
      };
    case "validator-bundle":
      return { kind: "validator_bundle", digest, reference: proof.reference };
    default:
      return proof satisfies never;
  }
}
