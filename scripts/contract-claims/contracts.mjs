/** "Typed contracts for …": the definition of each contract. */
import {
  notStrictEqual as differs,
  deepStrictEqual as equal,
  ok,
  rejects,
  strictEqual as same,
} from "node:assert";
import { digestBytes } from "rollbook/base";
import {
  checkProofs,
  digestCallLog,
  openRecord,
  PolicyRevision,
  PolicyRevisionLineage,
  RolloutContent,
  sealLineage,
} from "rollbook/contract";
import {
  checkpointOf,
  codeOf,
  FAMILY,
  filledShelf,
  revision,
  rollout,
  Shelf,
  stepStream,
  weights,
} from "./world.mjs";

export const contractRows = [
  {
    name: "policy-revision",
    claim: "PolicyRevision is typed and checkpoint-aware",
    sound: () => revision(2),
    broken: () => {
      const { checkpoint: _, schema: _s, ...bare } = revision(2).record;
      return revision(2, { ...bare, checkpoint: undefined });
    },
    prove(sealed) {
      const record = openRecord(PolicyRevision, sealed.bytes);
      equal(record, sealed.record);
      same(sealed.digest, digestBytes(PolicyRevision.kind, sealed.bytes));
      same(record.checkpoint?.objectDigest, weights("policy-r2"), "the revision names no checkpoint");
      same(record.number, 2n);
      const moved = revision(2, { checkpoint: { ...checkpointOf("policy-r2"), step: 101n } });
      differs(moved.digest, sealed.digest, "the digest does not bind the checkpoint");
    },
  },
  {
    name: "rollout-artifact",
    claim: "RolloutArtifact is proof-bearing, and its proofs can be checked",
    sound: () => rollout("rollout-b"),
    broken: () =>
      rollout("rollout-b", { envelope: { worker: "worker-a", startedAtMs: 1, endedAtMs: 2, proofs: [] } }),
    async prove({ content, envelope }) {
      equal(
        envelope.record.proofs.map(({ kind }) => kind),
        ["execution", "validator-bundle"],
      );
      same(envelope.record.content, content.digest, "the envelope does not bind the content");
      const forged = {
        ...envelope.record,
        proofs: [{ kind: "call-log", digest: digestCallLog([content.digest]) }],
      };
      same(await codeOf(() => checkProofs(forged, content.record)), "digest-mismatch");
    },
  },
  {
    name: "rollout-sample",
    claim: "RolloutSample is token level or step level, in one artifact",
    sound: () => rollout("rollout-a", { streams: [...draftStreams(), stepStream()] }),
    broken: () => rollout("rollout-a"),
    prove({ content }) {
      const { streams } = openRecord(RolloutContent, content.bytes);
      equal(
        streams.map(({ level }) => level),
        ["token", "step"],
      );
      same(streams[0].samples, 2);
      same(streams[1].steps[0].candidates[streams[1].steps[0].chosen].probability, 0.75);
    },
  },
  {
    name: "trainer-batch",
    claim: "TrainerBatch assembly is deterministic: a function of manifest, target, options and seed",
    sound: () => (seed) => filledShelf().assemble({ seed }),
    broken: () => {
      let calls = 0n;
      return (seed) => filledShelf().assemble({ seed: seed + calls++ });
    },
    async prove(assemble) {
      const [one, again, other] = [await assemble(1n), await assemble(1n), await assemble(2n)];
      same(again.digest, one.digest, "the same input gave two batches");
      equal(Buffer.from(again.bytes), Buffer.from(one.bytes));
      differs(other.digest, one.digest, "the seed has no effect");
    },
  },
  {
    name: "policy-revision-lineage",
    claim: "PolicyRevisionLineage is explicit over source and target revisions",
    sound: async () => {
      const shelf = filledShelf();
      const batch = await shelf.assemble();
      return shelf.open(batch.record.lineage);
    },
    broken: () => sealLineage(revision(3), [revision(3)]).record,
    async prove(lineage) {
      same(lineage.schema, PolicyRevisionLineage.kind);
      same(lineage.family, FAMILY);
      same(lineage.target.id, "policy-r3");
      equal(
        lineage.sources.map(({ id, digest, drift }) => ({ id, digest, drift })),
        [
          { id: "policy-r1", digest: weights("policy-r1"), drift: 2n },
          { id: "policy-r2", digest: weights("policy-r2"), drift: 1n },
        ],
      );
      await rejects(new Shelf(revision(3), rollout("rollout-a")).assemble(), { code: "unknown-revision" });
      ok(lineage.sources.every(({ record }) => record.startsWith("sha256:")));
    },
  },
];

function draftStreams() {
  return [
    {
      level: "token",
      family: FAMILY,
      logprobKind: "sampling",
      revision: { id: "policy-r1", digest: weights("policy-r1") },
      ids: [101, 202],
      logprobs: [-0.25, -0.5],
    },
  ];
}
