import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Shelf, weightsOf } from "../../../test/support/shelf.ts";
import { bytesOf, columnTag, digestColumn } from "../../base/arrays.ts";
import { manualClock } from "../../base/clock.ts";
import type { Digest } from "../../base/digest.ts";
import { type Sealed, seal } from "../../contract/codec/record.ts";
import { newKeyPem, RolloutContent, signerFromPem, TrainerBatch, Verdict } from "../../contract/index.ts";
import type { BlobStore } from "../../store/blob/blob-store.ts";
import { memoryStore } from "../../store/blob/memory-store.ts";
import { openBook } from "../../store/book.ts";
import { makeSealer } from "../../store/sealer.ts";
import { assembleBatch } from "../batch/assemble.ts";
import { verifyBook, verifyRecord } from "./verify-book.ts";

async function copyToStore(
  shelf: Shelf,
  except: (digest: Digest) => boolean = () => false,
): Promise<BlobStore> {
  const store = memoryStore();
  for (const [digest, blob] of shelf.blobs) if (!except(digest)) store.put(blob.kind, blob.bytes);
  await store.flush();
  return store;
}

async function shelfWithBatch(): Promise<{ shelf: Shelf; batch: Sealed<TrainerBatch> }> {
  const shelf = new Shelf();
  shelf.revision("policy-r1");
  const target = shelf.revision("policy-r2").digest;
  for (let i = 0; i < 5; i++) shelf.rollout(`rollout-${i}`, {}, { rewards: [0, 0, i] });
  const request = { read: shelf.read, write: shelf.write, manifest: shelf.manifest(), target, seed: 3n };
  return { shelf, batch: await assembleBatch({ ...request, selection: { level: "token" } }) };
}

/** Verifies a book in which every blob is in a separate file. */
async function verifyLarge(shelf: Shelf, except: (digest: Digest) => boolean = () => false) {
  const root = mkdtempSync(join(tmpdir(), "rollbook-verify-"));
  try {
    const book = await openBook(root, { clock: manualClock(), largeBytes: 1 });
    for (const [digest, { kind, bytes }] of shelf.blobs) if (!except(digest)) book.put(kind, bytes);
    const report = await verifyBook(book);
    await book.close();
    return report;
  } finally {
    rmSync(root, { recursive: true });
  }
}

describe("a whole book", () => {
  test("a sound book has no problem, and every kind is counted", async () => {
    const { shelf } = await shelfWithBatch();
    const report = await verifyBook(await copyToStore(shelf));
    expect(report.problems).toEqual([]);
    expect(report.counts["rollbook.rollout-content.v1"]).toBe(5);
    expect(report.trust).toMatchObject({ artifacts: 5, signed: 0, trusted: 0 });
  });

  test("one rollout id with two contents, as two gateways may seal it, is named with both", async () => {
    const shelf = new Shelf();
    const contents = [1, 2].map(
      (reward) => shelf.rollout("same", {}, { rewards: [0, 0, reward] }).content.digest,
    );
    shelf.rollout("other");
    const report = await verifyBook(await copyToStore(shelf));
    expect(report.sameId).toEqual([{ rollout: "same", contents: contents.sort() }]);
  });

  test("leaving out any one blob that a record refers to is found", async () => {
    const { shelf } = await shelfWithBatch();
    const referred = [...shelf.blobs].filter(
      ([, blob]) =>
        !["policy-revision", "rollout-envelope", "trainer-batch"].some((kind) =>
          blob.kind.includes(`.${kind}.v1`),
        ),
    );
    for (const [missing] of referred) {
      const report = await verifyBook(await copyToStore(shelf, (digest) => digest === missing));
      expect(report.problems.map((each) => each.message).join("\n")).toContain(missing);
    }
  });

  test("what another writer adds to a pack already read is not missing", async () => {
    const shelf = new Shelf();
    shelf.verdict(shelf.rollout("late").content.digest, {});
    const store = await copyToStore(shelf);
    const early = async function* () {
      for await (const item of store.scan())
        if (item.type === "damage" || item.kind === Verdict.kind) yield [item];
    };
    const report = await verifyBook({ scanRuns: early, get: (digest) => store.get(digest) });
    expect(report.problems).toEqual([]);
    const gone = await verifyBook({ scanRuns: early, get: async () => undefined });
    expect(gone.problems).toMatchObject([{ code: "missing-blob" }]);
  });

  test("records and columns in files of their own are looked into as any other", async () => {
    const sound = await shelfWithBatch();
    expect((await verifyLarge(sound.shelf)).problems).toEqual([]);
    const maimed = sound.shelf.rollout("maimed", {}, { logprobs: [0, -1, -2] }).content.record.streams[0]!;
    if (maimed.level !== "token") throw new Error("expected a token stream");
    const missing = maimed.columns.logprobs.digest;
    const report = await verifyLarge(sound.shelf, (digest) => digest === missing);
    expect(report.problems.map((each) => each.message).join("\n")).toContain(missing);

    const nan = Float32Array.of(0, Number.NaN, 0);
    const liar = new Shelf();
    const { schema: _, ...record } = structuredClone(liar.rollout("liar").content.record);
    const stream = record.streams[0]!;
    if (stream.level === "token") stream.columns.logprobs.digest = digestColumn(nan);
    liar.write({ kind: columnTag("f32"), digest: digestColumn(nan), bytes: bytesOf(nan) });
    liar.write(seal(RolloutContent, record));
    const codes = (await verifyLarge(liar)).problems.map((each) => each.code);
    expect(codes).toContain("non-finite-number");
  });

  test("a content record that lies about its columns is named", async () => {
    const shelf = new Shelf();
    const { content } = shelf.rollout("liar");
    const { schema: _, ...record } = structuredClone(content.record);
    const stream = record.streams[0]!;
    if (stream.level === "token") stream.samples = 1;
    const store = await copyToStore(shelf);
    const lie = seal(RolloutContent, { ...record, rolloutId: "forged" as never });
    store.put(lie.kind, lie.bytes);
    const report = await verifyBook(store);
    expect(report.problems).toMatchObject([
      { code: "bad-mask", record: "rollout-content forged", digest: lie.digest },
    ]);
  });

  test("a batch that does not follow from its manifest is named, though all its digests fit", async () => {
    const { shelf, batch } = await shelfWithBatch();
    const { schema: _, ...record } = batch.record;
    const forged = seal(TrainerBatch, {
      ...record,
      totals: { ...record.totals, rewardSum: 1e6 },
    });
    const store = await copyToStore(shelf);
    store.put(forged.kind, forged.bytes);
    const report = await verifyBook(store);
    expect(report.problems).toMatchObject([{ code: "not-reproducible", digest: forged.digest }]);
  });

  test("bytes that are not canonical are found although their digest fits", async () => {
    const store = memoryStore();
    const digest = store.put("rollbook.task.v1", Buffer.from('{ "schema":"rollbook.task.v1"}'));
    expect((await verifyBook(store)).problems).toMatchObject([{ code: "not-canonical", digest }]);
  });

  test("non-finite columns behind a content record are found", async () => {
    const shelf = new Shelf();
    const { content } = shelf.rollout("a");
    const { schema: _, ...record } = structuredClone(content.record);
    const store = await copyToStore(shelf);
    const digest = store.put(columnTag("f32"), new Uint8Array(Float32Array.of(0, Number.NaN, 0).buffer));
    const stream = record.streams[0]!;
    if (stream.level === "token") stream.columns.logprobs.digest = digest;
    const poisoned = seal(RolloutContent, record);
    store.put(poisoned.kind, poisoned.bytes);
    expect((await verifyBook(store)).problems).toMatchObject([
      { code: "non-finite-number", digest: poisoned.digest },
    ]);
  });

  test.each([4, 200])("a sample outside every segment is found, in a mask of %i runs", async (runs) => {
    const shelf = new Shelf();
    const mask = Array.from({ length: runs * 2 }, (_, i) => i % 2);
    const numbers = mask.map(() => 0);
    const whole = {
      start: 0,
      end: mask.length,
      revision: { id: "policy-r1", digest: weightsOf("policy-r1") },
    };
    const columns = { ids: numbers, logprobs: numbers, mask, rewards: numbers, revision: undefined };
    const { content } = shelf.rollout(
      "a",
      {},
      {
        ...columns,
        segments: [
          { ...whole, end: 2 },
          { ...whole, start: 2 },
        ],
      },
    );
    expect((await verifyBook(await copyToStore(shelf))).problems).toEqual([]);
    const { schema: _, ...record } = structuredClone(content.record);
    const stream = record.streams[0]!;
    if (stream.level === "token") stream.segments.pop();
    const store = await copyToStore(shelf);
    const forged = seal(RolloutContent, record);
    store.put(forged.kind, forged.bytes);
    expect((await verifyBook(store)).problems).toMatchObject([{ code: "bad-mask", digest: forged.digest }]);
  });

  test("one revision id with two digests across the book is found", async () => {
    const shelf = new Shelf();
    shelf.revision("policy-r1");
    shelf.rollout("a", {}, { revision: { id: "policy-r1", digest: weightsOf("something else") } });
    expect((await verifyBook(await copyToStore(shelf))).problems).toMatchObject([
      { code: "revision-conflict" },
    ]);
  });
});

describe("trust", () => {
  test("signed by a key is reported apart from signed by a trusted key; one signer counts once", async () => {
    const [mine, theirs] = [signerFromPem(newKeyPem()), signerFromPem(newKeyPem())];
    const store = memoryStore();
    const shelf = new Shelf();
    const rollouts = ["a", "b", "c"].map((name) => shelf.rollout(name));
    await Promise.all(rollouts.slice(0, 2).map((each) => makeSealer(store, mine).add(each)));
    await makeSealer(store, mine).add(rollouts[0]!);
    await makeSealer(store, theirs).add(rollouts[2]!);
    const { trust, problems } = await verifyBook(store, { trustedKeys: [mine.publicKey] });
    expect(problems).toEqual([]);
    expect(trust).toMatchObject({ artifacts: 3, signed: 3, trusted: 2 });
    expect(trust.signers.find((each) => each.key === mine.publicKey)).toMatchObject({
      artifacts: 2,
      trusted: true,
    });
  });

  test("many rollouts sealed at once share one signature", async () => {
    const store = memoryStore();
    const shelf = new Shelf();
    const sealer = makeSealer(store, signerFromPem(newKeyPem()));
    await Promise.all(Array.from({ length: 50 }, (_, i) => sealer.add(shelf.rollout(`rollout-${i}`))));
    const { counts, trust } = await verifyBook(store);
    expect(trust.signed).toBe(50);
    expect(counts["rollbook.attestation.v1"]).toBe(1);
  });
});

describe("one record", () => {
  test("a batch is walked down to the columns of its rollouts", async () => {
    const { shelf, batch } = await shelfWithBatch();
    const report = await verifyRecord(await copyToStore(shelf), batch.digest);
    expect(report.problems).toEqual([]);
    expect(report.blobs).toBe(shelf.blobs.size);
  });

  test("a missing column deep below is named with the rollout that needs it", async () => {
    const { shelf, batch } = await shelfWithBatch();
    const [digest] = [...shelf.blobs].find(([, blob]) => blob.kind === columnTag("u32"))!;
    const store = await copyToStore(shelf, (each) => each === digest);
    const report = await verifyRecord(store, batch.digest);
    expect(
      report.problems.some(
        (each) => each.code === "missing-blob" && each.record.startsWith("rollout-content rollout-"),
      ),
    ).toBe(true);
  });
});
