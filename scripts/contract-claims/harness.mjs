/** "The current harness should prove." */
import { deepStrictEqual as equal, ok, strictEqual as same } from "node:assert";
import { rngFrom } from "rollbook/base";
import { assemblePsionicBatch, makePsionicArtifact, parsePsionicRevision } from "rollbook/psionic";
import {
  codeOf,
  draft,
  filledShelf,
  LOOP_INPUT,
  lines,
  PROOFS,
  revision,
  rollout,
  Shelf,
  weights,
  withCli,
} from "./world.mjs";

export const harnessRows = [
  {
    name: "checkpoint-anchors",
    claim: "checkpoint-backed source revisions anchor rollout artifacts",
    sound: () => ({ id: "policy-r1", digest: weights("policy-r1") }),
    broken: () => ({ id: "policy-r1", digest: weights("other weights") }),
    prove: (source) =>
      withCli(async ({ cli, json }) => {
        await cli("artifact import -", LOOP_INPUT());
        await cli("artifact import -", lines(draft("anchored", {}, { revision: source })));
        const { streams } = await json("artifact show anchored");
        equal(streams[0].segments[0].revision, { id: "policy-r1", digest: weights("policy-r1") });
        same(revision(1).record.checkpoint.objectDigest, streams[0].segments[0].revision.digest);
      }),
  },
  {
    name: "unique-sources",
    claim: "a batch retains the unique source revisions represented in it",
    sound: () => [rollout("rollout-a"), rollout("rollout-b"), rollout("third"), rollout("fourth")],
    broken: () => [rollout("rollout-a"), rollout("third"), rollout("fourth")],
    async prove(rollouts) {
      const shelf = new Shelf(revision(1), revision(2), revision(3), ...rollouts);
      const { record } = await shelf.assemble();
      equal(
        record.bySource.map(({ revision: { id } }) => id),
        ["policy-r1", "policy-r2"],
      );
      equal(
        shelf.open(record.lineage).sources.map(({ id }) => id),
        ["policy-r1", "policy-r2"],
      );
      equal(
        record.bySource.map(({ rows }) => rows),
        [3, 1],
      );
    },
  },
  {
    name: "aggregates",
    claim:
      "reward and advantage aggregates are preserved in machine-legible form, in total, by source and by group",
    sound: async () => {
      const shelf = filledShelf();
      const { record } = await shelf.assemble();
      return { record, groups: shelf.open(record.groups).groups };
    },
    broken: async () => {
      const shelf = filledShelf();
      const { record } = await shelf.assemble();
      const totals = { ...record.totals, rewardSum: record.totals.rewardSum + 0.125 };
      return { record: { ...record, totals }, groups: shelf.open(record.groups).groups };
    },
    prove({ record, groups }) {
      // By hand: rewards 0.5 + 0.125 and 0.25 − 0.125; advantages 0.25 + 0.125 and 0.0625 − 0.5. All exact in f32.
      const { totals, bySource } = record;
      equal([totals.rewardSum, totals.rewardMean], [0.75, 0.375]);
      equal([totals.advantageSum, totals.advantageMean], [-0.0625, -0.015625]);
      equal(
        bySource.map(({ rewardSum }) => rewardSum),
        [0.625, 0.125],
      );
      equal(
        bySource.map(({ advantageSum }) => advantageSum),
        [0.375, -0.4375],
      );
      equal(
        groups.map(({ group, rewardSum, rollouts }) => ({ group, rewardSum, rollouts })),
        [{ group: "group-1", rewardSum: 0.75, rollouts: 2 }],
      );
    },
  },
  {
    name: "proofs-survive",
    claim: "proof references survive assembly and deduplicate cleanly",
    sound: () => proofsOf(rollout("third", { envelope: withProofs("rollout-a") })),
    broken: async () => {
      const all = await proofsOf(rollout("third", { envelope: withProofs("rollout-a") }));
      return [...all, all[0]];
    },
    async prove(proofs) {
      const expected = [...PROOFS["rollout-a"], ...PROOFS["rollout-b"]].sort((a, b) =>
        a.digest < b.digest ? -1 : 1,
      );
      equal(await proofs, expected);
    },
  },
  {
    name: "order-independent",
    claim: "batch and lineage digests are deterministic: 20 random orders of arrival give one of each",
    sound: () => async (rollouts) => {
      const { digest, record } = await new Shelf(
        revision(1),
        revision(2),
        ...rollouts.map((name) => rollout(name)),
      ).assemble();
      return `${digest} ${record.lineage}`;
    },
    // The psionic-v1 scheme, which hashes artifacts in the order of their arrival.
    broken: () => (rollouts) => psionicDigest(rollouts),
    async prove(digestOf) {
      const names = ["rollout-a", "rollout-b", "third", "fourth", "fifth"];
      const digests = new Set();
      for (let i = 0; i < 20; i++) digests.add(await digestOf(rngFrom(i).shuffle([...names])));
      same(digests.size, 1, `${digests.size} digests from 20 orders`);
    },
  },
  {
    name: "psionic-golden",
    claim: "psionic-v1 artifacts, lineages and batches have the digests of the original",
    sound: () => -0.2,
    broken: () => -0.25,
    prove(logprob) {
      const a = psionicArtifact("rollout-a", { logprob });
      const b = psionicArtifact("rollout-b");
      same(a.artifact_digest, "44c316328f3a739385223529ffdbbb1408879b40bef6701359febf7ae1c8f4a0");
      same(b.artifact_digest, "cbfe99198c508a5ec062533c84b56f39fed8e9c5477222934574260859d6ae06");
      const batch = assemblePsionicBatch({
        batchId: "trainer-batch-1",
        target: psionicRevision(3),
        rollouts: [a, b],
        assembledAtMs: 1300n,
      });
      same(
        batch.policy_lineage.lineage_digest,
        "9c75310cc0ea0c28ae20c7d416c62192d1c9496267736991d79eaa97bf73f8eb",
      );
      same(batch.batch_digest, "86059511507c8d14bfe6bbf66d9ae55c9a395c854e8c6c2994d94d7fa64637a8");
    },
  },
  {
    name: "family-before-duplicate",
    claim: "of two faults in one psionic-v1 batch the family is named before the duplicate",
    sound: () => psionicArtifact("rollout-a", { family: "other" }),
    broken: () => psionicArtifact("rollout-a"),
    async prove(second) {
      const rollouts = [psionicArtifact("rollout-a"), second];
      const parts = { batchId: "b", target: psionicRevision(3), rollouts, assembledAtMs: 1n };
      same(await codeOf(() => assemblePsionicBatch(parts)), "policy-family-mismatch");
      ok(rollouts.every(({ artifact_id }) => artifact_id === "rollout-a"));
    },
  },
];

function withProofs(name) {
  return { worker: "worker-b", startedAtMs: 1, endedAtMs: 2, proofs: PROOFS[name] };
}

async function proofsOf(more) {
  const shelf = filledShelf(more);
  const { record } = await shelf.assemble();
  return shelf.open(record.proofs).proofs;
}

function psionicRevision(number, family = "train.decoder") {
  const fields = {
    policy_family: family,
    revision_id: `policy-r${number}`,
    policy_digest: `digest-r${number}`,
    produced_at_ms: 1000,
  };
  return parsePsionicRevision(JSON.stringify(fields));
}

const sample = (token_id, logprob, reward, advantage) => ({ token_id, logprob, reward, advantage });
const proof = (kind, digest, reference) => ({ kind, digest, reference });

function psionicArtifact(name, { logprob = -0.2, family } = {}) {
  const isB = name === "rollout-b";
  return makePsionicArtifact({
    artifact_id: name,
    worker_id: isB ? "worker-b" : "worker-a",
    environment: { environment_ref: "env.weather", version: "1" },
    task_id: isB ? "task-berlin" : "task-paris",
    source_policy_revision: psionicRevision(isB ? 2 : 1, family),
    samples: isB
      ? [sample(303, -0.1, 0.2, 0.05), sample(404, -0.4, -0.1, -0.02)]
      : [sample(101, logprob, 0.4, 0.3), sample(202, -0.3, 0.1, 0.2)],
    termination_reason: isB ? "max_tokens" : "completed",
    proof_references: isB
      ? [
          proof("execution_proof", "proof-b", "exec://proof-b"),
          proof("validator_bundle", "validator-1", "validator://bundle-1"),
        ]
      : [proof("execution_proof", "proof-a", "exec://proof-a")],
    created_at_ms: isB ? 1110 : 1100,
  });
}

function psionicDigest(names) {
  const rollouts = names.map((name) => psionicArtifact(name));
  return assemblePsionicBatch({ batchId: "b", target: psionicRevision(3), rollouts, assembledAtMs: 1n })
    .batch_digest;
}
