import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  DIGESTS,
  psionicRevisionFields,
  ROLLOUT_A,
  ROLLOUT_B,
} from "../../../test/support/psionic-golden.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { parseId } from "../../base/ids.ts";
import { seal } from "../codec/record.ts";
import { PolicyRevision } from "../policy/policy-revision.ts";
import { type RolloutDraft, sealRollout } from "../rollout/rollout-draft.ts";
import { makePsionicLineage } from "./batch.ts";
import {
  assemblePsionicBatch,
  checkPsionicBatch,
  fromPsionicArtifact,
  fromPsionicRevision,
  makePsionicArtifact,
  type PsionicArtifact,
  parsePsionicArtifact,
  parsePsionicBatch,
  parsePsionicRevision,
  toPsionicArtifact,
  toPsionicRevision,
  writePsionicJson,
} from "./index.ts";
import type { PsionicTermination } from "./schema.ts";

const a = makePsionicArtifact(ROLLOUT_A);
const b = makePsionicArtifact(ROLLOUT_B);
const target = parsePsionicRevision(JSON.stringify(psionicRevisionFields(3)));
const batchId = parseId("trainer-batch-1");
const golden = { batchId, target, rollouts: [a, b], assembledAtMs: 1300n };
const CONTEXT = { logprobKind: "sampling", dataSource: "synthetic" } as const;

const hexOfF32 = (value: number) => Buffer.from(Float32Array.of(value).buffer).toString("hex");

describe("psionic-v1 digests", () => {
  test("both artifacts, the lineage and the batch have the published digests", () => {
    const batch = assemblePsionicBatch(golden);
    expect(a.artifact_digest).toBe(DIGESTS.rolloutA);
    expect(b.artifact_digest).toBe(DIGESTS.rolloutB);
    expect(batch.policy_lineage.lineage_digest).toBe(DIGESTS.lineage);
    expect(batch.batch_digest).toBe(DIGESTS.batch);
    expect([hexOfF32(batch.reward_sum), hexOfF32(batch.advantage_sum)]).toEqual(["9a99193f", "14ae073f"]);
    expect(batch.proof_references.map((proof) => proof.digest)).toEqual([
      "proof-a",
      "proof-b",
      "validator-1",
    ]);
  });

  test("sums round to f32 after each addition, per rollout and then across them", () => {
    // Computed by hand: 2^24 + 1 rounds back to 2^24 in f32, so the first rollout sums to 2^24, not 2^24 + 2.
    const wide = makePsionicArtifact({
      ...ROLLOUT_A,
      samples: [2 ** 24, 1, 1].map((reward) => ({ token_id: 1, logprob: 0, reward, advantage: 0 })),
    });
    const one = makePsionicArtifact({
      ...ROLLOUT_B,
      samples: [1, 1].map((reward) => ({ token_id: 1, logprob: 0, reward, advantage: 0 })),
    });
    expect(assemblePsionicBatch({ ...golden, rollouts: [wide] }).reward_sum).toBe(2 ** 24);
    expect(assemblePsionicBatch({ ...golden, rollouts: [wide, one] }).reward_sum).toBe(2 ** 24 + 2);
  });

  test("sources are unique and sorted by UTF-8 bytes, where UTF-16 order differs", () => {
    const named = (id: string) =>
      parsePsionicRevision(JSON.stringify({ ...psionicRevisionFields(1), revision_id: id }));
    const lineage = makePsionicLineage(target, [named("\u{1f600}"), named("\uffee"), named("\u{1f600}")]);
    expect(lineage.source_revisions.map((each) => each.revision_id)).toEqual(["\uffee", "\u{1f600}"]);
  });
});

describe("psionic-v1 JSON", () => {
  test("text → artifact → text is the identity on what the original writes", () => {
    const text = writePsionicJson(a);
    expect(text).toContain('"logprob":-0.2,"reward":0.4,"advantage":0.3');
    expect(writePsionicJson(parsePsionicArtifact(text))).toBe(text);
    const batch = writePsionicJson(assemblePsionicBatch(golden));
    expect(batch).toContain('"reward_sum":0.6,');
    expect(writePsionicJson(parsePsionicBatch(batch))).toBe(batch);
  });

  test("u64 keeps every digit to 2^64−1, read from numbers or decimal strings, written as numbers", () => {
    const max = "18446744073709551615";
    const fields = JSON.stringify(psionicRevisionFields(1)).slice(0, -1);
    for (const wire of [max, `"${max}"`]) {
      const revision = parsePsionicRevision(`${fields},"revision_number":${wire}}`);
      expect(revision.revision_number).toBe(2n ** 64n - 1n);
      expect(writePsionicJson(revision)).toContain(`"revision_number":${max},`);
    }
    for (const wire of ["18446744073709551616", "-1", "1.5", '"01"', "9007199254740993e0", "1e19"]) {
      expect(refusalOf(() => parsePsionicRevision(`${fields},"revision_number":${wire}}`)).code).toBe(
        "bad-record",
      );
    }
  });

  test("every f32 survives the text, and so does the digest", () => {
    const f32 = fc.float({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(f32, f32, f32), { minLength: 1, maxLength: 5 }), (rows) => {
        const samples = rows.map(([logprob, reward, advantage]) => ({
          token_id: 7,
          logprob,
          reward,
          advantage,
        }));
        const made = makePsionicArtifact({ ...ROLLOUT_A, samples });
        expect(parsePsionicArtifact(writePsionicJson(made))).toEqual(made);
      }),
      { numRuns: 500 },
    );
  });

  test("an absent proof list reads as empty and is not written", () => {
    const { proof_references: _, ...bare } = ROLLOUT_A;
    const text = writePsionicJson(makePsionicArtifact(bare));
    expect(text).not.toContain("proof_references");
    expect(parsePsionicArtifact(text).proof_references).toEqual([]);
  });
});

describe("psionic-v1 refusals", () => {
  test("EmptyRolloutSamples is empty-samples", () => {
    const refusal = refusalOf(() => makePsionicArtifact({ ...ROLLOUT_A, samples: [] }));
    expect([refusal.code, refusal.fields.artifact]).toEqual(["empty-samples", "rollout-a"]);
  });

  test("DuplicateProofDigest is duplicate-proof", () => {
    const proof = { kind: "commitment", digest: "proof-a", reference: "elsewhere" } as const;
    const proof_references = [...ROLLOUT_A.proof_references!, proof];
    const refusal = refusalOf(() => makePsionicArtifact({ ...ROLLOUT_A, proof_references }));
    expect([refusal.code, refusal.fields.digest]).toEqual(["duplicate-proof", "proof-a"]);
  });

  test("EmptyTrainerBatch is empty-batch", () => {
    expect(refusalOf(() => assemblePsionicBatch({ ...golden, rollouts: [] })).code).toBe("empty-batch");
  });

  test("PolicyFamilyMismatch is policy-family-mismatch, and comes before DuplicateRolloutArtifact", () => {
    const foreign = makePsionicArtifact({
      ...ROLLOUT_A,
      source_policy_revision: { ...psionicRevisionFields(1), policy_family: "train.other" },
    });
    const refusal = refusalOf(() => assemblePsionicBatch({ ...golden, rollouts: [a, foreign] }));
    expect(refusal.code).toBe("policy-family-mismatch");
    expect(refusal.fields).toEqual({
      batch: "trainer-batch-1",
      artifact: "rollout-a",
      expected: "train.decoder",
      actual: "train.other",
    });
    expect(refusalOf(() => assemblePsionicBatch({ ...golden, rollouts: [a, a] })).code).toBe(
      "duplicate-artifact",
    );
  });

  test("a forged digest is refused: of an artifact, a lineage, a batch, and of any sample behind them", () => {
    const forgeries: (() => unknown)[] = [
      () => parsePsionicArtifact(writePsionicJson({ ...a, artifact_digest: b.artifact_digest })),
      () => parsePsionicArtifact(writePsionicJson(a).replace('"reward":0.4', '"reward":0.5')),
      () => assemblePsionicBatch({ ...golden, rollouts: [{ ...a, created_at_ms: 1n }] }),
      () =>
        parsePsionicBatch(
          writePsionicJson(assemblePsionicBatch(golden)).replace('"reward_sum":0.6', '"reward_sum":9'),
        ),
      () =>
        parsePsionicBatch(
          writePsionicJson(assemblePsionicBatch(golden)).replace(DIGESTS.lineage, DIGESTS.batch),
        ),
      () => checkPsionicBatch(assemblePsionicBatch(golden), [b, a]),
    ];
    for (const forge of forgeries) expect(refusalOf(forge).code).toBe("digest-mismatch");
  });

  test("one revision id with two digests is refused, where the original lets the last one win", () => {
    const swapped = makePsionicArtifact({
      ...ROLLOUT_B,
      source_policy_revision: { ...psionicRevisionFields(1), policy_digest: "digest-other" },
    });
    const refusal = refusalOf(() => assemblePsionicBatch({ ...golden, rollouts: [a, swapped] }));
    expect([refusal.code, refusal.fields.revision]).toEqual(["revision-conflict", "policy-r1"]);
  });

  test("null, which is how the original writes NaN, and an f32 overflow are refused as non-finite", () => {
    const text = writePsionicJson(a);
    for (const bad of ["null", "1e39", "-3.5e38"]) {
      const refusal = refusalOf(() => parsePsionicArtifact(text.replace('"reward":0.4', `"reward":${bad}`)));
      expect([refusal.code, refusal.fields.field]).toEqual(["non-finite-number", "$.samples[0].reward"]);
    }
  });

  test("names that its |-joined digest would confuse are refused", () => {
    for (const bad of ["", "a|worker|b", "a@b", "a/b", "..", "a\u0000"]) {
      expect(refusalOf(() => makePsionicArtifact({ ...ROLLOUT_A, task_id: bad })).code).toBe("bad-id");
    }
    const proof = { kind: "commitment", digest: "x|proof|y", reference: "z" } as const;
    expect(refusalOf(() => makePsionicArtifact({ ...ROLLOUT_A, proof_references: [proof] })).code).toBe(
      "bad-record",
    );
  });
});

describe("psionic-v1 conversion", () => {
  test("artifact → sealed rollout → artifact gives the same psionic digest", () => {
    for (const artifact of [a, b]) {
      const { draft, revision } = fromPsionicArtifact(artifact, CONTEXT);
      sealRollout(draft);
      const back = toPsionicArtifact(draft, seal(PolicyRevision, revision).record);
      expect(back.artifact).toEqual(artifact);
      expect(back.lost).toEqual(["seed", "dataSource", "stream.logprobKind"]);
    }
  });

  test("every termination comes back as itself", () => {
    const reasons = ["completed", "max_tokens", "environment_error", "tool_error", "cancelled", "rejected"];
    for (const termination_reason of reasons as PsionicTermination[]) {
      const artifact = makePsionicArtifact({ ...ROLLOUT_A, termination_reason });
      const { draft, revision } = fromPsionicArtifact(artifact, CONTEXT);
      const back = toPsionicArtifact(draft, seal(PolicyRevision, revision).record);
      expect([back.artifact.termination_reason, back.lost.includes("ending")]).toEqual([
        termination_reason,
        false,
      ]);
    }
  });

  test("a revision with number, parent and checkpoint comes back whole, digests of every form included", () => {
    const hex = "ab".repeat(32);
    const revision = parsePsionicRevision(
      JSON.stringify({
        ...psionicRevisionFields(2),
        revision_number: "18446744073709551615",
        policy_digest: hex,
        parent_revision_id: "policy-r1",
        checkpoint: {
          checkpoint_family: "train.decoder",
          stream_id: "stream-1",
          manifest_digest: `sha256:${hex}`,
          object_digest: "object-1",
          writer_node_id: "node-1",
          membership_epoch: 4,
          cluster_state_digest: "cluster-1",
          topology_digest: "topology-1",
          started_at_ms: 0,
          checkpoint_ref: "s3://bucket/checkpoint",
          step: 12,
          durable_at_ms: 0,
        },
      }),
    );
    const parent = parsePsionicRevision(JSON.stringify(psionicRevisionFields(1)));
    for (const known of [undefined, parent]) {
      const sealed = seal(PolicyRevision, fromPsionicRevision(revision, known));
      expect(sealed.record.digest).toBe(`sha256:${hex}`);
      expect(sealed.record.parent?.id).toBe(known?.revision_id);
      expect(toPsionicRevision(sealed.record)).toEqual({ revision, lost: [] });
    }
  });

  test("an origin that does not fit its digest is refused on the way back", () => {
    const { revision } = fromPsionicArtifact(a, CONTEXT);
    const forged = { ...revision, origin: { ...revision.origin!, fields: { policy_digest: "digest-r9" } } };
    expect(refusalOf(() => toPsionicRevision(seal(PolicyRevision, forged).record)).code).toBe(
      "digest-mismatch",
    );
  });

  test("what psionic cannot carry is named, and what it cannot express is refused", () => {
    const { draft, revision } = fromPsionicArtifact(a, CONTEXT);
    const record = seal(PolicyRevision, revision).record;
    const [stream] = draft.streams as [Extract<RolloutDraft["streams"][number], { level: "token" }>];
    const { rewards: _, ...unlabelled } = stream;
    const rich: RolloutDraft = {
      ...draft,
      seed: 7n,
      group: parseId("g1"),
      sampling: { temperature: 1 },
      ending: { kind: "truncated", limit: "turns" },
      streams: [{ ...stream, mask: [0, 1], turns: [0, 1] }],
      envelope: { ...draft.envelope, startedAtMs: 1, attempt: 2 },
    };
    const { artifact, lost } = toPsionicArtifact(rich, record);
    expect(artifact.samples.map((sample) => sample.token_id)).toEqual([202]);
    expect(lost.sort()).toEqual(
      [
        ...["dataSource", "ending", "envelope.attempt", "envelope.startedAtMs", "group", "sampling", "seed"],
        ...["stream.logprobKind", "stream.turns", "tokens the policy only read"],
      ].sort(),
    );
    const other = { ...record, id: parseId("policy-r9") };
    const noRewards = { ...draft, streams: [unlabelled] };
    expect(refusalOf(() => toPsionicArtifact(noRewards, record)).message).toContain("unlabelled");
    expect(refusalOf(() => toPsionicArtifact(draft, other)).message).toContain("policy-r1");
    expect(refusalOf(() => toPsionicArtifact({ ...draft, streams: [] }, record)).code).toBe("bad-record");
  });

  test("a commitment keeps its kind through our records", () => {
    const artifact: PsionicArtifact = makePsionicArtifact({
      ...ROLLOUT_A,
      proof_references: [{ kind: "commitment", digest: "c-1", reference: "ledger:1" }],
    });
    const { draft, revision } = fromPsionicArtifact(artifact, CONTEXT);
    expect(sealRollout(draft).envelope.record.proofs[0]?.kind).toBe("execution");
    expect(toPsionicArtifact(draft, seal(PolicyRevision, revision).record).artifact).toEqual(artifact);
  });
});
