/** The eleven known defects of psionic's rollout contracts. Each test names the defect that it covers. */
import { describe, expect, test } from "vitest";
import { canonicalize } from "../src/base/canonical-json.ts";
import type { Digest } from "../src/base/digest.ts";
import { parseId } from "../src/base/ids.ts";
import { rngFrom } from "../src/base/rng.ts";
import {
  Assignment,
  BatchShard,
  checkAttestation,
  checkBinding,
  commitTo,
  digestCallLog,
  inlineRollout,
  newKeyPem,
  openRecord,
  PolicyRevision,
  PolicyRevisionLineage,
  parseRolloutDraft,
  RolloutContent,
  type SealedRollout,
  sampleSeed,
  seal,
  sealLineage,
  sealRollout,
  signerFromPem,
  signersOf,
  succeeding,
  Verdict,
} from "../src/contract/index.ts";
import { parsePsionicArtifact } from "../src/contract/psionic/index.ts";
import { assembleBatch } from "../src/keep/batch/index.ts";
import { verifyBook } from "../src/keep/verify/index.ts";
import { memoryStore } from "../src/store/index.ts";
import { d, exampleWire } from "./support/examples.ts";
import { refusalOf, rejectionOf } from "./support/refusal-of.ts";
import { draftWire, FAMILY, makeRevision, makeRollout, Shelf, stepWire, weightsOf } from "./support/shelf.ts";

const digestsOf = ({ content, envelope }: SealedRollout) => ({
  content: content.digest,
  envelope: envelope.digest,
});

function newShelf(): { shelf: Shelf; target: Digest } {
  const shelf = new Shelf();
  shelf.revision("policy-r1", { number: 1n });
  shelf.revision("policy-r2", { number: 2n });
  return { shelf, target: shelf.revision("policy-r3", { number: 3n }).digest };
}

const assemble = (shelf: Shelf, target: Digest, options = {}) =>
  assembleBatch({
    read: shelf.read,
    write: shelf.write,
    manifest: shelf.manifest(),
    target,
    selection: { level: "token" },
    options,
    seed: 1n,
  });

async function storeOf(shelf: Shelf) {
  const store = memoryStore();
  for (const { kind, bytes } of shelf.blobs.values()) store.put(kind, bytes);
  return store;
}

describe("1: digests are recomputed on every parse and submit", () => {
  test("a forged digest is refused when a draft is sealed, when psionic JSON is read, and by verify", async () => {
    expect(refusalOf(() => makeRollout("r", { contentDigest: d("forged") })).code).toBe("digest-mismatch");
    expect(refusalOf(() => makeRollout("r", { envelopeDigest: d("forged") })).code).toBe("digest-mismatch");
    const psionic = JSON.stringify({ ...PSIONIC, artifact_digest: "00".repeat(32) });
    expect(refusalOf(() => parsePsionicArtifact(psionic)).code).toBe("digest-mismatch");

    const { shelf } = newShelf();
    const { content } = shelf.rollout("r");
    const store = await storeOf(shelf);
    const stored = await store.get(content.digest);
    stored!.bytes[stored!.bytes.length - 3]! ^= 1;
    expect((await rejectionOf(store.get(content.digest))).message).toContain(content.digest);
  });
});

describe("2: digests are unambiguous and bind every field", () => {
  test("moving a character across a field boundary changes the digest", () => {
    const digests = [
      ["ab", "c"],
      ["a", "bc"],
      ["abc", "d"],
    ].map(([family, id]) => makeRevision(id!, { family: parseId(family!), digest: d("same") }).digest);
    expect(new Set(digests).size).toBe(3);
  });

  test("checkpoint, parent and number are bound", () => {
    const whole = exampleWire(PolicyRevision.kind);
    const digestOf = (wire: object) => {
      const bytes = Buffer.from(canonicalize(wire));
      return seal(PolicyRevision, openRecord(PolicyRevision, bytes)).digest;
    };
    for (const field of ["checkpoint", "parent", "number"]) {
      const { [field]: _, ...without } = whole;
      expect(digestOf(without)).not.toBe(digestOf(whole));
    }
    const step = { ...(whole.checkpoint as object), step: "13" };
    expect(digestOf({ ...whole, checkpoint: step })).not.toBe(digestOf(whole));
  });
});

describe("3: NaN, infinity and bad ids are refused", () => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    "%d is refused in columns, steps and scores",
    (bad) => {
      const drafts = [
        draftWire("r", {}, { rewards: [0, 0, bad] }),
        draftWire("r", { streams: [stepWire({ step: { reward: bad } })] }),
        draftWire("r", { scores: [{ name: "exact", value: bad, weight: 1 }] }),
      ];
      for (const wire of drafts)
        expect(refusalOf(() => sealRollout(parseRolloutDraft(wire))).code).toBe("non-finite-number");
      const typed = parseRolloutDraft(draftWire("r"));
      const streams = [{ ...typed.streams[0]!, rewards: Float32Array.of(0, 0, bad) }] as typeof typed.streams;
      expect(refusalOf(() => sealRollout({ ...typed, streams })).code).toBe("non-finite-number");
    },
  );

  test.each(["", "a@b", "a|b", "a\u0000b", "a/b", "a\\b", "..", "../a"])("the id %j is refused", (bad) => {
    expect(refusalOf(() => makeRollout(bad)).code).toBe("bad-id");
    expect(refusalOf(() => makeRollout("r", { task: { id: bad } })).code).toBe("bad-id");
    expect(refusalOf(() => makeRollout("r", { group: bad })).code).toBe("bad-id");
  });
});

describe("4: one revision id has one digest, and exact means digest-equal", () => {
  test("two digests under one id are refused in a lineage, in a rollout and in a batch", async () => {
    const swapped = makeRevision("policy-r1", { digest: d("swapped") });
    const [target, source] = [makeRevision("policy-r3"), makeRevision("policy-r1")];
    expect(refusalOf(() => sealLineage(target, [source, swapped])).code).toBe("revision-conflict");
    expect(refusalOf(() => sealLineage(source, [makeRevision("policy-r1", { digest: d("x") })])).code).toBe(
      "revision-conflict",
    );

    const { shelf, target: to } = newShelf();
    shelf.rollout("r", {}, { revision: { id: "policy-r1", digest: d("swapped") } });
    expect((await rejectionOf(assemble(shelf, to))).code).toBe("revision-conflict");
  });
});

describe("5: a batch does not depend on the order of its input", () => {
  test("ten shuffles give one batch digest", async () => {
    const digests = new Set<Digest>();
    for (let seed = 0; seed < 10; seed++) {
      const { shelf, target } = newShelf();
      for (const i of rngFrom(seed).shuffle([0, 1, 2, 3, 4, 5, 6, 7]))
        shelf.rollout(`rollout-${i}`, { group: `group-${i % 2}` }, { rewards: [0, 0, i] });
      digests.add((await assemble(shelf, target)).digest);
    }
    expect(digests.size).toBe(1);
  });
});

describe("6: verdicts gate batches, quarantine has a release, the target advances", () => {
  test("a rejection keeps a rollout out, a quarantine until it is released, a weight is carried", async () => {
    const { shelf, target } = newShelf();
    const [half, rejected, held] = ["half", "rejected", "held"].map(
      (name) => shelf.rollout(name).content.digest,
    );
    shelf.verdict(half!, { disposition: "normalized", weightBps: 5000, codes: ["duplicate-detected"] });
    shelf.verdict(rejected!, { disposition: "rejected", weightBps: 0 });
    const quarantine = shelf.verdict(held!, { disposition: "quarantined", weightBps: 10_000 });
    const rows = async () => {
      const { record } = await assemble(shelf, target);
      const shard = openRecord(BatchShard, (await shelf.read(record.shards[0]!.digest))!.bytes);
      return Object.fromEntries(shard.rows.map((row) => [row.rolloutId, row.weightBps]));
    };
    expect(await rows()).toEqual({ half: 5000 });
    shelf.release(held!, quarantine.digest);
    expect(await rows()).toEqual({ half: 5000, held: 10_000 });
  });

  test("what nobody judged stays out where a verdict is required", async () => {
    const { shelf, target } = newShelf();
    shelf.rollout("unjudged");
    expect((await rejectionOf(assemble(shelf, target, { requireVerdict: true }))).code).toBe("empty-batch");
  });

  test("a trained revision follows its parent and names the batch it was trained on", () => {
    const parent = makeRevision("policy-r1", { number: 1n }).record;
    const next = seal(PolicyRevision, {
      ...{ family: parent.family, id: parseId("policy-r2"), digest: d("weights"), producedAtMs: 2000 },
      ...succeeding(parent),
      training: { batches: [d("batch")], seed: 1n },
    });
    expect(next.record).toMatchObject({ number: 2n, parent: { id: "policy-r1", digest: parent.digest } });
    expect(PolicyRevision.references(next.record).map((each) => each.digest)).toContain(d("batch"));
  });
});

describe("7: a duplicate counts once, and an artifact is bound to its assignment", () => {
  test("submitting the same rollout twice stores and counts it once", async () => {
    const store = memoryStore();
    for (let times = 0; times < 2; times++)
      for (const { kind, bytes } of makeRollout("r").blobs) store.put(kind, bytes);
    const { counts, trust } = await verifyBook(store);
    expect(counts[RolloutContent.kind]).toBe(1);
    expect(trust.artifacts).toBe(1);
    const { shelf } = newShelf();
    const twice = digestsOf(shelf.rollout("r"));
    expect(refusalOf(() => shelf.manifest([twice, twice])).code).toBe("duplicate-artifact");
  });

  test("another environment, task or seed than assigned is refused by the binding and by assembly", async () => {
    const { shelf, target } = newShelf();
    const assignment = seal(Assignment, {
      id: parseId("assignment-1"),
      environment: makeRollout("r").content.record.environment,
      task: { id: parseId("task-paris") },
      group: parseId("group-1"),
      samples: 2,
      seed: 1n,
    });
    shelf.write(assignment);
    const bound = { assignment: { digest: assignment.digest, sample: 0 } };
    const seed = sampleSeed(assignment.digest, 0).toString();
    checkBinding(makeRollout("r", { ...bound, seed }).content.record, assignment.record, assignment.digest);
    for (const over of [{ seed: "1" }, { seed, environment: "env.x@1" }, { seed, task: { id: "task-x" } }]) {
      const { record } = makeRollout("r", { ...bound, ...over }).content;
      expect(refusalOf(() => checkBinding(record, assignment.record, assignment.digest)).code).toBe(
        "not-bound",
      );
    }
    shelf.rollout("liar", { ...bound, seed: "1" });
    expect((await rejectionOf(assemble(shelf, target))).code).toBe("not-bound");
  });
});

describe("8: u64 is exact, and order is by UTF-8 bytes", () => {
  test("neighbours beyond 2^53 stay apart, to 2^64−1", () => {
    const at = (seed: string) => makeRollout("r", { seed }).content;
    const [a, b] = [at("9007199254740992"), at("9007199254740993")];
    expect(a.digest).not.toBe(b.digest);
    expect(b.record.seed).toBe(9007199254740993n);
    expect(at("18446744073709551615").record.seed).toBe(2n ** 64n - 1n);
    expect(refusalOf(() => at("18446744073709551616")).fields.field).toBe("$.seed");
  });

  test("sources are sorted by UTF-8 bytes, where UTF-16 order differs", () => {
    const sources = ["\u{1f600}", "\uffee"].map((id) => makeRevision(id));
    expect(sources.map((each) => each.record.id as string).sort()).toEqual(["\u{1f600}", "\uffee"]);
    const { record } = sealLineage(makeRevision("policy-r3"), sources);
    expect(record.sources.map((each) => each.id)).toEqual(["\uffee", "\u{1f600}"]);
  });
});

describe("9: outcomes are explicit, and signers are counted, not signatures", () => {
  test("accepting without an observation, or a duplicate at full weight, is refused", () => {
    const accepted = {
      subject: d("content"),
      validator: parseId("v1"),
      disposition: "accepted",
      weightBps: 10_000,
      codes: [],
      observations: [],
      atMs: 1,
    } as const;
    expect(refusalOf(() => seal(Verdict, { ...accepted, codes: [], observations: [] })).message).toContain(
      "unobserved",
    );
    const observations = [{ name: parseId("tokens"), observed: 3 }];
    const duplicate = { ...accepted, observations, codes: ["duplicate-detected" as const] };
    expect(refusalOf(() => seal(Verdict, duplicate)).message).toContain("duplicate");
    expect(seal(Verdict, { ...duplicate, disposition: "normalized", weightBps: 5000 }).record.weightBps).toBe(
      5000,
    );
  });

  test("two attestations by one key and one by another are two signers", () => {
    const [one, other] = [signerFromPem(newKeyPem()), signerFromPem(newKeyPem())];
    const attestations = [one.attest([d("a")]), one.attest([d("a"), d("b")]), other.attest([d("a")])];
    expect(signersOf(attestations.map((each) => each.record)).get(d("a"))?.size).toBe(2);
  });
});

describe("10: proofs can be checked", () => {
  const envelope = (proofs: object[]) => ({ worker: "w", startedAtMs: 1, endedAtMs: 2, proofs });

  test("a call-log proof and a commitment are recomputed from the content", () => {
    const good = makeRollout("r").content;
    const commitment = { kind: "commitment", digest: commitTo(good.digest, "nonce"), nonce: "nonce" };
    const log = { kind: "call-log", digest: digestCallLog([]) };
    expect(makeRollout("r", { envelope: envelope([commitment, log]) }).envelope.record.proofs).toHaveLength(
      2,
    );
    for (const forged of [
      { ...commitment, nonce: "other" },
      { ...log, digest: d("forged") },
    ])
      expect(refusalOf(() => makeRollout("r", { envelope: envelope([forged]) })).code).toBe(
        "digest-mismatch",
      );
  });

  test("a signature is verified, and verify tells signed from trusted", async () => {
    const [signer, stranger] = [signerFromPem(newKeyPem()), signerFromPem(newKeyPem())];
    const { shelf } = newShelf();
    const { envelope: sealed } = shelf.rollout("r");
    const attestation = signer.attest([sealed.digest]);
    checkAttestation(attestation.record);
    shelf.write(attestation);
    const store = await storeOf(shelf);
    const seenBy = async (key: string) => (await verifyBook(store, { trustedKeys: [key] })).trust;
    expect(await seenBy(signer.publicKey)).toMatchObject({ artifacts: 1, signed: 1, trusted: 1 });
    expect(await seenBy(stranger.publicKey)).toMatchObject({ artifacts: 1, signed: 1, trusted: 0 });
  });
});

describe("11: prompt, mask, group, turns and sampling are in the artifact, and it is stored and exchanged", () => {
  test("all of them survive storage and the exchange form", async () => {
    const prompt = { role: "user", content: "How is the weather?" };
    const reply = { role: "assistant", content: "Rain." };
    const call = {
      dialect: "openai-chat",
      model: "tiny-lm",
      request: { messages: [prompt], parameters: { temperature: 0.5 } },
      response: { messages: [reply] },
    };
    const { shelf, target } = newShelf();
    const sealed = shelf.rollout("r", { calls: [call], sampling: { top_p: 0.9 } }, { turns: [0, 1, 1] });
    const inline = await inlineRollout(shelf.read, digestsOf(sealed));
    expect(inline).toMatchObject({
      group: "group-1",
      sampling: { top_p: 0.9 },
      calls: [call],
      streams: [{ mask: [0, 1, 1], turns: [0, 1, 1], family: FAMILY }],
    });
    expect(sealRollout(parseRolloutDraft(inline)).envelope.digest).toBe(sealed.envelope.digest);
    const { record } = await assemble(shelf, target);
    expect(record.totals).toMatchObject({ rows: 1, samples: 2 });
    const lineage = (await shelf.read(record.lineage))!;
    expect(openRecord(PolicyRevisionLineage, lineage.bytes).sources[0]).toMatchObject({
      id: "policy-r1",
      digest: weightsOf("policy-r1"),
      drift: 2n,
    });
  });
});

const PSIONIC = {
  artifact_id: "rollout-a",
  worker_id: "worker-a",
  environment: { environment_ref: "env.weather", version: "1" },
  task_id: "task-paris",
  source_policy_revision: {
    policy_family: "train.decoder",
    revision_id: "policy-r1",
    policy_digest: "digest-r1",
    produced_at_ms: 1000,
  },
  samples: [{ token_id: 101, logprob: -0.2, reward: 0.4, advantage: 0.3 }],
  termination_reason: "completed",
  created_at_ms: 1100,
};
