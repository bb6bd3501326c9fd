import { describe, expect, test } from "vitest";
import { FAMILY, Shelf, stepWire, weightsOf } from "../../../test/support/shelf.ts";
import { columnFrom } from "../../base/arrays.ts";
import type { Digest } from "../../base/digest.ts";
import { parseId } from "../../base/ids.ts";
import { rngFrom } from "../../base/rng.ts";
import {
  BatchGroups,
  BatchProofs,
  BatchShard,
  LedgerPage,
  LossLedger,
  PolicyRevisionLineage,
  RolloutContent,
  RolloutEnvelope,
} from "../../contract/index.ts";
import { type ReadRecord, readRecord } from "../../store/index.ts";
import { type AssembleRequest, assembleBatch, reassemble } from "./assemble.ts";
import { diffBatches } from "./diff.ts";

function shelfWithTarget(): { shelf: Shelf; target: Digest } {
  const shelf = new Shelf();
  shelf.revision("policy-r1", { number: 1n });
  shelf.revision("policy-r2", { number: 2n });
  return { shelf, target: shelf.revision("policy-r3", { number: 3n }).digest };
}

function assemble(shelf: Shelf, target: Digest, over: Partial<AssembleRequest> = {}) {
  const selection = { level: "token" as const };
  return assembleBatch({
    read: shelf.read,
    write: shelf.write,
    manifest: shelf.manifest(),
    target,
    selection,
    seed: 1n,
    ...over,
  });
}

async function reasonsOf(shelf: Shelf, ledgerDigest: Digest): Promise<Record<string, number>> {
  const ledger = await readRecord(shelf.read, LossLedger, ledgerDigest);
  return Object.fromEntries(ledger.reasons.map((each) => [each.reason, each.streams]));
}

const r2 = { revision: { id: "policy-r2", digest: weightsOf("policy-r2") } };
const oneToken = {
  level: "token",
  family: FAMILY,
  logprobKind: "sampling",
  revision: { id: "policy-r1", digest: weightsOf("policy-r1") },
  ids: [1],
  logprobs: [-1],
  rewards: [1],
};
const rewarded = (reward: number) => ({ rewards: [0, 0, reward] });

describe("order", () => {
  test("the same artifacts in 20 random orders give one digest", async () => {
    const digests = new Set<Digest>();
    for (let order = 0; order < 20; order++) {
      const { shelf, target } = shelfWithTarget();
      const names = rngFrom(order).shuffle(Array.from({ length: 30 }, (_, i) => i));
      for (const i of names)
        shelf.rollout(
          `rollout-${i}`,
          { group: `group-${i % 5}` },
          { ...rewarded(i / 8), ...(i % 2 ? r2 : {}) },
        );
      digests.add((await assemble(shelf, target, { options: { shardTokens: 20 } })).digest);
    }
    expect(digests.size).toBe(1);
  });

  test("records that the caller has opened are not read again, and give the same batch", async () => {
    const { shelf, target } = shelfWithTarget();
    for (let i = 0; i < 6; i++) shelf.rollout(`rollout-${i}`, { group: `group-${i % 2}` });
    const kinds = new Set<string>();
    const read = async (digest: Digest) => {
      const blob = await shelf.read(digest);
      if (blob !== undefined) kinds.add(blob.kind);
      return blob;
    };
    const plain = await assemble(shelf, target, { read });
    const ofRollouts: string[] = [RolloutContent.kind, RolloutEnvelope.kind];
    expect([...kinds]).toEqual(expect.arrayContaining(ofRollouts));
    kinds.clear();
    const readOpened: ReadRecord = (type, digest) => readRecord(shelf.read, type, digest);
    const opened = await assemble(shelf, target, { read, readRecord: readOpened });
    expect(opened.digest).toBe(plain.digest);
    expect([...kinds].filter((kind) => ofRollouts.includes(kind))).toEqual([]);
  });

  test("a seed fixes the order of the rows, another seed changes it, and no row is lost", async () => {
    const { shelf, target } = shelfWithTarget();
    for (let i = 0; i < 20; i++) shelf.rollout(`rollout-${i}`);
    const rows = async (seed: bigint) => {
      const batch = await assemble(shelf, target, { seed });
      return (await readRecord(shelf.read, BatchShard, batch.record.shards[0]!.digest)).rows.map(
        (row) => row.rolloutId as string,
      );
    };
    expect(await rows(1n)).toEqual(await rows(1n));
    expect(await rows(1n)).not.toEqual(await rows(2n));
    expect((await rows(2n)).sort()).toEqual((await rows(1n)).sort());
  });

  test("a batch assembled again from its manifest has the same digest", async () => {
    const { shelf, target } = shelfWithTarget();
    for (let i = 0; i < 9; i++) shelf.rollout(`rollout-${i}`, {}, rewarded(i));
    const batch = await assemble(shelf, target, { options: { advantage: "leave-one-out" } });
    expect((await reassemble(shelf.read, batch.record)).digest).toBe(batch.digest);
  });
});

describe("lineage and sums", () => {
  test("unique source revisions are kept, sorted by UTF-8 bytes, with their drift from the target", async () => {
    const { shelf, target } = shelfWithTarget();
    // U+FF5E sorts before U+1F600 by UTF-8 bytes and after it by UTF-16 units.
    for (const id of ["\u{1f600}", "～"]) {
      shelf.revision(id, { number: 1n });
      shelf.rollout(`by-${id}`, {}, { revision: { id, digest: weightsOf(id) } });
    }
    shelf.rollout("again", {}, r2);
    shelf.rollout("and-again", {}, r2);
    const batch = await assemble(shelf, target);
    const lineage = await readRecord(shelf.read, PolicyRevisionLineage, batch.record.lineage);
    expect(lineage.sources.map((each) => [each.id, each.drift])).toEqual([
      ["policy-r2", 1n],
      ["～", 2n],
      ["\u{1f600}", 2n],
    ]);
  });

  test("sums and means hold in all, by source and by group", async () => {
    const { shelf, target } = shelfWithTarget();
    shelf.rollout("a", { group: "g1" }, rewarded(1));
    shelf.rollout("b", { group: "g1" }, { ...rewarded(3), ...r2 });
    shelf.rollout("c", { group: "g2" }, { ...rewarded(5), ...r2 });
    const { record } = await assemble(shelf, target, { options: { advantage: "leave-one-out" } });
    expect(record.totals).toMatchObject({ rows: 3, samples: 6, rewardSum: 9, rewardMean: 3 });
    expect(
      record.bySource.map((each) => [each.revision.id, each.rows, each.rewardSum, each.rewardMean]),
    ).toEqual([
      ["policy-r1", 1, 1, 1],
      ["policy-r2", 2, 8, 4],
    ]);
    const { groups } = await readRecord(shelf.read, BatchGroups, record.groups);
    expect(
      groups.map((each) => [each.group, each.rollouts, each.baseline, each.rewardSum, each.advantageSum]),
    ).toEqual([
      ["g1", 2, 2, 4, 0],
      ["g2", 1, 5, 5, 0],
    ]);
  });

  test("a hot swap between calls is attributed to the revision that sampled each token", async () => {
    const { shelf, target } = shelfWithTarget();
    const segments = [
      { start: 0, end: 2, revision: { id: "policy-r1", digest: weightsOf("policy-r1") } },
      { start: 2, end: 3, ...r2 },
    ];
    shelf.rollout("swap", {}, { revision: undefined, segments, rewards: [0, 2, 5] });
    const { record } = await assemble(shelf, target);
    expect(
      record.bySource.map((each) => [each.revision.id, each.rows, each.samples, each.rewardSum]),
    ).toEqual([
      ["policy-r1", 1, 1, 2],
      ["policy-r2", 1, 1, 5],
    ]);
    expect(record.totals.rows).toBe(1);
  });

  test("proofs survive assembly once each, sorted by digest", async () => {
    const { shelf, target } = shelfWithTarget();
    const shared = { kind: "execution", digest: weightsOf("shared"), reference: "log" };
    for (const name of ["a", "b", "c"]) {
      const own = { kind: "execution", digest: weightsOf(name), reference: "log" };
      shelf.rollout(name, { envelope: { worker: "w", startedAtMs: 1, endedAtMs: 2, proofs: [shared, own] } });
    }
    const { record } = await assemble(shelf, target);
    const { proofs } = await readRecord(shelf.read, BatchProofs, record.proofs);
    expect(proofs.map((each) => each.digest)).toEqual(["shared", "a", "b", "c"].map(weightsOf).sort());
    expect(record.proofCount).toBe(4);
  });
});

describe("advantages", () => {
  async function advantagesOf(shelf: Shelf, target: Digest, over: Partial<AssembleRequest> = {}) {
    const batch = await assemble(shelf, target, over);
    const shard = await readRecord(shelf.read, BatchShard, batch.record.shards[0]!.digest);
    const column = columnFrom("f32", shelf.blobs.get(shard.data.columns.advantages.digest)!.bytes);
    return new Map(
      shard.rows.map((row) => [
        row.rolloutId as string,
        Array.from(column.subarray(row.start, row.start + row.length)),
      ]),
    );
  }

  test("mean-std compares within the group and covers sampled tokens only", async () => {
    const { shelf, target } = shelfWithTarget();
    shelf.rollout("low", {}, rewarded(1));
    shelf.rollout("high", {}, rewarded(3));
    const advantages = await advantagesOf(shelf, target);
    // Computed by hand: mean 2, population spread 1, so ±1 / (1 + 1e-6).
    const expected = Math.fround(1 / (1 + 1e-6));
    expect(advantages.get("high")).toEqual([0, expected, expected]);
    expect(advantages.get("low")).toEqual([0, -expected, -expected]);
  });

  test("an infrastructure failure is not in the baseline; an agent's failure is", async () => {
    const { shelf, target } = shelfWithTarget();
    shelf.rollout("good", {}, rewarded(4));
    shelf.rollout(
      "agent-failed",
      { ending: { kind: "failed", owner: "agent", message: "gave up" } },
      rewarded(0),
    );
    for (const owner of ["provider", "sandbox", "infrastructure"]) {
      shelf.rollout(
        owner,
        { ending: { kind: "failed", owner, message: "not the policy's doing" } },
        rewarded(-100),
      );
    }
    const advantages = await advantagesOf(shelf, target, { options: { advantage: "leave-one-out" } });
    expect(advantages.get("good")).toEqual([0, 4, 4]);
    expect(advantages.get("agent-failed")).toEqual([0, -4, -4]);
    expect(advantages.size).toBe(2);
  });

  test("a rollout split into several streams counts once in its baseline", async () => {
    const { shelf, target } = shelfWithTarget();
    const one = (reward: number) => ({ ...oneToken, rewards: [reward] });
    shelf.rollout("forked", { streams: [one(6), one(6), one(6)] });
    shelf.rollout("plain", { streams: [one(0)] });
    const batch = await assemble(shelf, target);
    const { groups } = await readRecord(shelf.read, BatchGroups, batch.record.groups);
    expect(groups[0]).toMatchObject({ rollouts: 2, baseline: 3, rows: 4 });
  });

  test("claimed advantages count only when asked for", async () => {
    const { shelf, target } = shelfWithTarget();
    shelf.rollout("a", {}, { advantages: [9, 0.5, 0.25] });
    expect((await advantagesOf(shelf, target, { options: { advantage: "claimed" } })).get("a")).toEqual([
      0, 0.5, 0.25,
    ]);
    expect((await advantagesOf(shelf, target, { options: { advantage: "none" } })).get("a")).toEqual([
      0, 0, 0,
    ]);
  });
});

describe("the ledger", () => {
  test("lists every exclusion with its reason, and the counts add up exactly", async () => {
    const { shelf, target } = shelfWithTarget();
    shelf.revision("router-r1", { family: parseId("router") });
    shelf.rollout("kept");
    shelf.rollout("two-streams", { streams: [oneToken, stepWire()] });
    shelf.rollout("cancelled", { ending: { kind: "cancelled" } });
    shelf.rollout("provider", { ending: { kind: "failed", owner: "provider", message: "503" } });
    shelf.rollout("task-failed", {
      task: { id: "broken" },
      ending: { kind: "failed", owner: "task", message: "no oracle" },
    });
    shelf.rollout("same-task", { task: { id: "broken" } });
    shelf.rollout("unlabelled", {}, { rewards: undefined });
    shelf.rollout("no-group", { group: undefined });
    shelf.rollout(
      "long",
      {},
      { ids: [1, 2, 3, 4], logprobs: [0, 0, 0, 0], mask: [1, 1, 1, 1], rewards: [0, 0, 0, 0] },
    );
    shelf.rollout("other-kind", {}, { logprobKind: "model" });
    const selection = { level: "token", family: parseId(FAMILY), logprobKind: "sampling" } as const;
    const { record } = await assemble(shelf, target, { selection, options: { maxLength: 3 } });
    expect(await reasonsOf(shelf, record.ledger)).toEqual({
      "other-level": 1,
      cancelled: 1,
      "failed-provider": 1,
      "failed-task": 1,
      "task-quarantined": 1,
      unlabelled: 1,
      "no-group": 1,
      "too-long": 1,
      "other-logprob-kind": 1,
    });
    const ledger = await readRecord(shelf.read, LossLedger, record.ledger);
    expect(ledger.considered.artifacts).toBe(10);
    expect(ledger.batched).toEqual({
      artifacts: 2,
      streams: 2,
      samples: record.totals.samples,
      tokens: record.tokens,
    });
    const pages = await Promise.all(ledger.pages.map((page) => readRecord(shelf.read, LedgerPage, page)));
    const entries = pages.flatMap((page) => page.entries);
    expect(entries.length).toBe(9);
    expect(entries.reduce((sum, entry) => sum + entry.samples, 0)).toBe(ledger.excluded.samples);
    expect(entries.reduce((sum, entry) => sum + entry.tokens, 0)).toBe(ledger.excluded.tokens);
  });

  test("verdicts gate: rejected, quarantined, unobserved stay out; a release lets in; a weight is carried", async () => {
    const { shelf, target } = shelfWithTarget();
    const named = (name: string) => shelf.rollout(name).content.digest;
    shelf.verdict(named("accepted"));
    shelf.verdict(named("normalized"), {
      disposition: "normalized",
      weightBps: 5000,
      codes: ["duplicate-detected"],
    });
    shelf.verdict(named("rejected"), {
      disposition: "rejected",
      weightBps: 0,
      codes: ["execution-proof-missing"],
    });
    shelf.verdict(named("unobserved"), { disposition: "unobserved", observations: [], weightBps: 0 });
    shelf.verdict(named("quarantined"), { disposition: "quarantined", weightBps: 0 });
    const released = named("released");
    shelf.release(
      released,
      shelf.verdict(released, { disposition: "quarantined", weightBps: 10_000 }).digest,
    );
    const twice = named("two-validators");
    shelf.verdict(twice);
    shelf.verdict(twice, { validator: parseId("v2"), disposition: "rejected", weightBps: 0 });
    named("nobody-looked");
    const { record } = await assemble(shelf, target, { options: { requireVerdict: true } });
    expect(await reasonsOf(shelf, record.ledger)).toEqual({
      rejected: 2,
      unobserved: 1,
      quarantined: 1,
      "no-verdict": 1,
    });
    const { rows } = await readRecord(shelf.read, BatchShard, record.shards[0]!.digest);
    expect(Object.fromEntries(rows.map((row) => [row.rolloutId, row.weightBps]))).toEqual({
      accepted: 10_000,
      normalized: 5000,
      released: 10_000,
    });
  });

  test("late feedback labels an unlabelled rollout on its last sample, once per idempotency key", async () => {
    const { shelf, target } = shelfWithTarget();
    const unlabelled = shelf.rollout("late", {}, { rewards: undefined }).content.digest;
    shelf.rollout("labelled");
    shelf.feedback(unlabelled, 2);
    shelf.feedback(unlabelled, 7, { atMs: 5 }); // the same key again: does not count
    const { record } = await assemble(shelf, target, {
      options: { feedback: parseId("accepted"), advantage: "none" },
    });
    const shard = await readRecord(shelf.read, BatchShard, record.shards[0]!.digest);
    const row = shard.rows.find((each) => each.content === unlabelled)!;
    const rewards = columnFrom("f32", shelf.blobs.get(shard.data.columns.rewards.digest)!.bytes);
    expect(Array.from(rewards.subarray(row.start, row.start + row.length))).toEqual([0, 0, 2]);
    expect(record.totals.rewardSum).toBe(3);
  });
});

describe("late feedback on a call", () => {
  test("lands on the last sample of the call, though a hot swap cut it in two", async () => {
    const { shelf, target } = shelfWithTarget();
    const call = {
      dialect: "other",
      model: "tiny-lm",
      request: { messages: [], parameters: {} },
      response: { messages: [] },
    };
    const by = (id: string, start: number) => ({
      start,
      end: start + 1,
      call: 0,
      revision: { id, digest: weightsOf(id) },
    });
    const segments = [by("policy-r1", 1), by("policy-r2", 2)];
    const over = { rewards: undefined, revision: undefined, segments };
    const { digest } = shelf.rollout("swapped", { calls: [call] }, over).content;
    shelf.feedback(digest, 2, { call: 0 });
    const { record } = await assemble(shelf, target, {
      options: { feedback: parseId("accepted"), advantage: "none" },
    });
    const shard = await readRecord(shelf.read, BatchShard, record.shards[0]!.digest);
    const rewards = columnFrom("f32", shelf.blobs.get(shard.data.columns.rewards.digest)!.bytes);
    expect(Array.from(rewards)).toEqual([0, 0, 2]);
  });
});

describe("step level", () => {
  test("choices, propensities and candidates arrive in ragged columns", async () => {
    const shelf = new Shelf();
    shelf.revision("router-r1", { family: parseId("router") });
    const target = shelf.revision("router-r2", { family: parseId("router") }).digest;
    shelf.rollout("a", { streams: [stepWire()] });
    shelf.rollout("b", { streams: [stepWire({ step: { chosen: 1, reward: 0 } })] });
    const { record } = await assemble(shelf, target, { selection: { level: "step" } });
    expect(record.totals).toMatchObject({ rows: 2, samples: 2, rewardSum: 1 });
    const shard = await readRecord(shelf.read, BatchShard, record.shards[0]!.digest);
    if (shard.data.level !== "step") throw new Error("expected a step shard");
    const { columns } = shard.data;
    const read = <T extends "u32" | "f64">(dtype: T, digest: Digest) =>
      Array.from(columnFrom(dtype, shelf.blobs.get(digest)!.bytes));
    const byName = new Map(shard.rows.map((row, i) => [row.rolloutId as string, i]));
    expect(read("f64", columns.probability.digest)[byName.get("b")!]).toBe(0.25);
    expect(read("u32", columns.candidateCounts.digest)).toEqual([3, 3]);
    expect(shard.data.candidates).toEqual(["small", "large", "huge"]);
  });

  test("a step without logged propensities stays out, by name", async () => {
    const shelf = new Shelf();
    const target = shelf.revision("router-r1", { family: parseId("router") }).digest;
    shelf.rollout("logged", { streams: [stepWire()] });
    const unlogged = stepWire().steps as { candidates: object[] }[];
    shelf.rollout("unlogged", {
      streams: [
        stepWire({
          step: { candidates: unlogged[0]!.candidates.map((one) => ({ ...one, probability: null })) },
        }),
      ],
    });
    const { record } = await assemble(shelf, target, { selection: { level: "step" } });
    expect(await reasonsOf(shelf, record.ledger)).toEqual({ "no-propensity": 1 });
  });
});

describe("refusals", () => {
  const code = (code: string) => expect.objectContaining({ code });

  test("a mix of families is refused, naming artifact, expected and actual", async () => {
    const { shelf, target } = shelfWithTarget();
    const odd = shelf.rollout("odd", {}, { family: "other.decoder" });
    await expect(assemble(shelf, target)).rejects.toMatchObject({
      code: "policy-family-mismatch",
      fields: { artifact: odd.content.digest, expected: FAMILY, actual: "other.decoder" },
    });
    await expect(
      assemble(shelf, target, { selection: { level: "token", family: parseId("other.decoder") } }),
    ).rejects.toEqual(code("policy-family-mismatch"));
  });

  test("a batch without a row is refused and says what became of the artifacts", async () => {
    const { shelf, target } = shelfWithTarget();
    await expect(assemble(shelf, target)).rejects.toEqual(code("empty-batch"));
    shelf.rollout("cancelled", { ending: { kind: "cancelled" } });
    await expect(assemble(shelf, target)).rejects.toThrow(/cancelled 1/);
  });

  test("one rollout twice in a manifest is refused", () => {
    const { shelf } = shelfWithTarget();
    shelf.rollout("a");
    shelf.rollout("a");
    expect(() => shelf.manifest()).toThrow(code("duplicate-artifact") as unknown as Error);
  });

  test("one revision id with two digests is refused, and so is a revision without a record", async () => {
    const { shelf, target } = shelfWithTarget();
    shelf.rollout("forged", {}, { revision: { id: "policy-r1", digest: weightsOf("other weights") } });
    await expect(assemble(shelf, target)).rejects.toEqual(code("revision-conflict"));
    const other = shelfWithTarget();
    other.shelf.rollout("unknown", {}, { revision: { id: "policy-r9", digest: weightsOf("policy-r9") } });
    await expect(assemble(other.shelf, other.target)).rejects.toEqual(code("unknown-revision"));
  });

  test("a mix of logprob kinds is refused unless one is selected", async () => {
    const { shelf, target } = shelfWithTarget();
    shelf.rollout("a");
    shelf.rollout("b", {}, { logprobKind: "model" });
    await expect(assemble(shelf, target)).rejects.toEqual(code("wrong-logprob-kind"));
  });

  test("an absent blob is named", async () => {
    const { shelf, target } = shelfWithTarget();
    const { content } = shelf.rollout("a");
    const stream = content.record.streams[0]!;
    if (stream.level === "token") shelf.blobs.delete(stream.columns.ids.digest);
    await expect(assemble(shelf, target)).rejects.toEqual(code("missing-blob"));
  });
});

describe("diff", () => {
  test("says in words that the seed, an artifact and the advantage rule differ, causes before effects", async () => {
    const { shelf, target } = shelfWithTarget();
    for (let i = 0; i < 6; i++) shelf.rollout(`rollout-${i}`, {}, rewarded(i));
    const first = await assemble(shelf, target);
    expect(await diffBatches(shelf.read, first.digest, first.digest)).toEqual([]);
    const reseeded = await diffBatches(
      shelf.read,
      first.digest,
      (await assemble(shelf, target, { seed: 2n })).digest,
    );
    expect(reseeded.map((each) => each.what)).toEqual(["seed", "shards"]);
    expect(reseeded[0]!.sentence).toBe("seed: 1 against 2, so the rows stand in another order.");
    shelf.rollout("rollout-6");
    const grown = await assemble(shelf, target, { options: { advantage: "leave-one-out" } });
    const differences = await diffBatches(shelf.read, first.digest, grown.digest);
    expect(differences.filter((each) => each.role === "cause").map((each) => each.what)).toEqual([
      "manifest.artifacts",
      "manifest.envelopes",
      "options.advantage",
    ]);
    expect(differences.findIndex((each) => each.role === "effect")).toBe(3);
  });
});
