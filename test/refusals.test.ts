/** Every refusal code has a case here; a new code without a case does not compile. */
import { describe, expect, test } from "vitest";
import { canonicalize } from "../src/base/canonical-json.ts";
import { parseId } from "../src/base/ids.ts";
import {
  Assignment,
  checkAttestation,
  checkBinding,
  inlineRollout,
  isRefusal,
  openRecord,
  PolicyRevision,
  parseRolloutDraft,
  REFUSALS,
  type RefusalCode,
  RolloutContent,
  sampleSeed,
  seal,
  sealLineage,
  sealManifest,
  sealRollout,
} from "../src/contract/index.ts";
import { TokenRules } from "../src/convert/handover/index.ts";
import { assembleBatch } from "../src/keep/batch/index.ts";
import { d, exampleSigner, exampleWire } from "./support/examples.ts";
import { rejectionOf } from "./support/refusal-of.ts";
import { draftWire, FAMILY, makeRevision, makeRollout, Shelf, stepWire, weightsOf } from "./support/shelf.ts";

const wireOf = (kind: string, over: object) => Buffer.from(canonicalize({ ...exampleWire(kind), ...over }));
const openContent = (over: object) =>
  openRecord(RolloutContent, wireOf(RolloutContent.kind, over), "content.json");

const CASES: Record<RefusalCode, { act: () => unknown; fields: object }> = {
  "empty-samples": {
    act: () => makeRollout("r", {}, { mask: [0, 0, 0] }),
    fields: { field: "streams[0]" },
  },
  "empty-batch": {
    act: () => {
      const shelf = new Shelf();
      const target = shelf.revision("policy-r3").digest;
      return assemble(shelf, target);
    },
    fields: { considered: 0 },
  },
  "policy-family-mismatch": {
    act: () =>
      sealLineage(makeRevision("policy-r3"), [makeRevision("policy-r1", { family: parseId("train.other") })]),
    fields: { expected: FAMILY, actual: "train.other", revision: "policy-r1" },
  },
  "duplicate-artifact": {
    act: () => {
      const twice = { content: d("content"), envelope: d("envelope") };
      return sealManifest({ artifacts: [twice, { ...twice, envelope: d("other") }], revisions: [] });
    },
    fields: { content: d("content") },
  },
  "duplicate-proof": {
    act: () => {
      const proof = { kind: "execution", digest: d("proof"), reference: "exec://1" };
      const again = { ...proof, reference: "exec://2" };
      return makeRollout("r", {
        envelope: { worker: "w", startedAtMs: 1, endedAtMs: 2, proofs: [proof, again] },
      });
    },
    fields: { digest: d("proof") },
  },
  "revision-conflict": {
    act: () =>
      sealLineage(makeRevision("policy-r3"), [
        makeRevision("policy-r1"),
        makeRevision("policy-r1", { digest: d("swapped") }),
      ]),
    fields: { revision: "policy-r1", digests: [weightsOf("policy-r1"), d("swapped")] },
  },
  "unknown-revision": {
    act: () => {
      const shelf = new Shelf();
      const target = shelf.revision("policy-r3").digest;
      shelf.rollout("r");
      return assemble(shelf, target);
    },
    fields: { revision: "policy-r1" },
  },
  "digest-mismatch": {
    act: () => makeRollout("r", { contentDigest: d("forged") }),
    fields: { field: "contentDigest", expected: d("forged") },
  },
  "not-canonical": {
    act: () =>
      openRecord(
        RolloutContent,
        Buffer.from(JSON.stringify(exampleWire(RolloutContent.kind))),
        "content.json",
      ),
    fields: { where: "content.json" },
  },
  "non-finite-number": {
    act: () => makeRollout("r", {}, { logprobs: [0, Number.NaN, 0] }),
    fields: { field: "$.streams[0].logprobs[1]" },
  },
  "length-mismatch": {
    act: () => makeRollout("r", {}, { rewards: [0] }),
    fields: { field: "streams[0].rewards", expected: 3, actual: 1 },
  },
  "bad-id": {
    act: () => openContent({ rolloutId: "a/../b" }),
    fields: { where: "content.json", field: "$.rolloutId" },
  },
  "unknown-schema": {
    act: () => openContent({ schema: "rollbook.rollout-content.v2" }),
    fields: {
      where: "content.json",
      expected: "rollbook.rollout-content.v1",
      actual: "rollbook.rollout-content.v2",
    },
  },
  "bad-record": {
    act: () => openContent({ dataSource: "invented" }),
    fields: { where: "content.json", field: "$.dataSource" },
  },
  "bad-mask": {
    act: () => makeRollout("r", {}, { mask: [0, 1, 2] }),
    fields: { field: "streams[0]", index: 2, value: 2 },
  },
  "bad-logprob": {
    act: () => makeRollout("r", {}, { logprobs: [0, 0.75, -1] }),
    fields: { field: "streams[0].logprobs", index: 1, value: 0.75 },
  },
  "bad-choice": {
    act: () => makeRollout("r", { streams: [stepWire({ step: { chosen: 2 } })] }),
    fields: { field: "streams[0].steps[0]" },
  },
  "bad-signature": {
    act: () => checkAttestation({ ...exampleSigner.attest([d("a")]).record, subjects: [d("b")] }),
    fields: { signer: exampleSigner.publicKey },
  },
  "not-bound": {
    act: () => {
      const assignment = seal(Assignment, {
        id: parseId("assignment-1"),
        environment: makeRollout("r").content.record.environment,
        task: { id: parseId("task-berlin") },
        group: parseId("group-1"),
        samples: 2,
        seed: 1n,
      });
      const bound = { digest: assignment.digest, sample: 1 };
      const seed = sampleSeed(assignment.digest, 1).toString();
      const { record } = makeRollout("r", { assignment: bound, seed }).content;
      return checkBinding(record, assignment.record, assignment.digest);
    },
    fields: { field: "task", expected: "task-berlin", actual: "task-paris" },
  },
  "wrong-logprob-kind": {
    act: () =>
      new TokenRules().require({ record: { rolloutId: "r" }, tokens: { logprobKind: "model" } } as never),
    fields: { row: "r", needed: "sampling", actual: "model" },
  },
  "missing-blob": {
    act: () => inlineRollout(async () => undefined, { content: d("content"), envelope: d("envelope") }),
    fields: { digest: d("envelope"), what: "envelope" },
  },
};

function assemble(shelf: Shelf, target: ReturnType<Shelf["manifest"]>) {
  const { read, write } = shelf;
  const selection = { level: "token" as const };
  return assembleBatch({ read, write, manifest: shelf.manifest(), target, selection, seed: 1n });
}

describe("refusals", () => {
  test.each(Object.entries(CASES))("%s is refused, with its fields", async (code, { act, fields }) => {
    const refusal = await rejectionOf((async () => act())());
    expect(refusal.code).toBe(code);
    expect(refusal.fields).toMatchObject(fields);
    expect(isRefusal(refusal)).toBe(true);
    expect(JSON.parse(JSON.stringify(refusal))).toMatchObject({ code, message: refusal.message });
  });

  test("there is a case for each code, and a meaning for each", () => {
    expect(Object.keys(CASES).sort()).toEqual(Object.keys(REFUSALS).sort());
    for (const meaning of Object.values(REFUSALS)) expect(meaning.length).toBeGreaterThan(8);
  });

  test("a valid neighbour of each refused draft is accepted", () => {
    for (const wire of [draftWire("r"), draftWire("r", { streams: [stepWire()] })])
      expect(sealRollout(parseRolloutDraft(wire)).blobs.length).toBeGreaterThan(0);
    expect(makeRevision("policy-r1").kind).toBe(PolicyRevision.kind);
  });
});
