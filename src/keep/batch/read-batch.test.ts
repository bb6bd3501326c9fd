import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyBatch, type ExpectedRow, sampleBatch, sealBatch } from "../../../test/support/random-batches.ts";
import { Shelf, stepWire, weightsOf } from "../../../test/support/shelf.ts";
import { bytesOf, columnTag, digestColumn } from "../../base/arrays.ts";
import type { Digest } from "../../base/digest.ts";
import { parseId } from "../../base/ids.ts";
import { BatchShard, type ReadBlob, seal, TrainerBatch } from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import { assembleBatch } from "./assemble.ts";
import { type ReadableBatch, readBatch } from "./read-batch.ts";

async function rowsOf(batch: ReadableBatch): Promise<ExpectedRow[]> {
  const rows: ExpectedRow[] = [];
  for await (const row of batch.rows()) rows.push(row);
  return rows;
}

describe("readBatch", () => {
  test("gives back the rows that were written, in order, whatever the shards", async () => {
    await fc.assert(
      fc.asyncProperty(anyBatch, async (random) => {
        const { shelf, digest } = sealBatch(random);
        const batch = await readBatch(shelf.read, digest);
        expect(batch.level).toBe(random.level);
        expect(await rowsOf(batch)).toEqual(random.rows);
      }),
      { numRuns: 100 },
    );
  });

  test("reads an assembled token batch: numbers of the rollouts, revisions, sources with drift", async () => {
    const shelf = new Shelf();
    shelf.revision("policy-r1", { number: 1n });
    shelf.revision("policy-r2", { number: 2n });
    const target = shelf.revision("policy-r3", { number: 3n }).digest;
    const revision = { id: "policy-r2", digest: weightsOf("policy-r2") };
    const one = shelf.rollout("one").content.digest;
    const two = shelf.rollout(
      "two",
      {},
      { revision, ids: [7, 8], logprobs: [0, -1], mask: [0, 1], rewards: [0, 3] },
    ).content.digest;
    const { digest } = await assembleBatch({
      read: shelf.read,
      write: shelf.write,
      manifest: shelf.manifest(),
      target,
      selection: { level: "token" },
      options: { advantage: "leave-one-out" },
      seed: 1n,
    });
    const batch = await readBatch(shelf.read, digest);
    expect(batch.sources.map(({ id, drift }) => [id, drift])).toEqual([
      ["policy-r1", 2n],
      ["policy-r2", 1n],
    ]);
    const rows = new Map((await rowsOf(batch)).map((row) => [row.content, row]));
    expect(rows.get(one)).toMatchObject({ rolloutId: "one", group: "group-1", reward: 1, weightBps: 10_000 });
    expect(rows.get(two)).toEqual({
      level: "token",
      content: two,
      stream: 0,
      rolloutId: "two",
      group: "group-1",
      weightBps: 10_000,
      samples: 1,
      reward: 3,
      segments: [{ start: 0, end: 2, revision }],
      ids: Uint32Array.of(7, 8),
      logprobs: Float32Array.of(0, -1),
      mask: Uint8Array.of(0, 1),
      turns: Uint32Array.of(0, 0),
      rewards: Float32Array.of(0, 3),
      advantages: Float32Array.of(0, 2),
    });
  });

  test("reads an assembled step batch: every step with its candidates by name", async () => {
    const shelf = new Shelf();
    const family = parseId("router");
    shelf.revision("router-r1", { family });
    const target = shelf.revision("router-r2", { family }).digest;
    shelf.rollout("one", { streams: [stepWire()] });
    const { digest } = await assembleBatch({
      read: shelf.read,
      write: shelf.write,
      manifest: shelf.manifest(),
      target,
      selection: { level: "step" },
      options: { advantage: "none" },
      seed: 1n,
    });
    const [row] = await rowsOf(await readBatch(shelf.read, digest));
    expect(row).toMatchObject({
      level: "step",
      rolloutId: "one",
      steps: [
        {
          chosen: 0,
          probability: 0.75,
          reward: 1,
          advantage: 0,
          candidates: [
            { id: "small", probability: 0.75, selectable: true },
            { id: "large", probability: 0.25, selectable: true },
            { id: "huge", probability: 0, selectable: false },
          ],
        },
      ],
    });
  });

  test("holds one shard at a time: a later shard is not read before its rows are asked for", async () => {
    const { shelf, digest } = sealBatch(sampleBatch("token", 60));
    const asked: string[] = [];
    const read: ReadBlob = (each) => {
      asked.push(shelf.blobs.get(each)!.kind);
      return shelf.read(each);
    };
    const batch = await readBatch(read, digest);
    expect(batch.record.shards.length).toBeGreaterThan(3);
    expect(asked).not.toContain(BatchShard.kind);
    await batch.rows().next();
    expect(asked.filter((kind) => kind === BatchShard.kind)).toHaveLength(1);
  });
});

describe("a batch that does not hold together is refused", () => {
  /** The batch with one shard changed and everything sealed again, as a forger would do it. */
  async function forge(
    level: "token" | "step",
    change: (shard: { rows: BatchShard["rows"]; data: BatchShard["data"] }, shelf: Shelf) => void,
  ): Promise<{ shelf: Shelf; digest: Digest }> {
    const { shelf, digest } = sealBatch(sampleBatch(level, 20));
    const record = await readRecord(shelf.read, TrainerBatch, digest);
    const { schema: _s, ...shard } = structuredClone(
      await readRecord(shelf.read, BatchShard, record.shards[0]!.digest),
    );
    change(shard, shelf);
    const forged = seal(BatchShard, shard);
    const { schema: _b, ...rest } = record;
    const shards = record.shards.map((each, i) => (i === 0 ? { ...each, digest: forged.digest } : each));
    const batch = seal(TrainerBatch, { ...rest, shards });
    for (const each of [forged, batch]) shelf.write(each);
    return { shelf, digest: batch.digest };
  }
  const failure = async ({ shelf, digest }: { shelf: Shelf; digest: Digest }) =>
    rowsOf(await readBatch(shelf.read, digest)).then(
      () => "read",
      (error) => error.code,
    );
  /** Stores a column that replaces another of the same length. */
  const place = <C extends Float32Array | Float64Array | Uint32Array>(shelf: Shelf, column: C) => {
    const digest = digestColumn(column);
    const dtype = column instanceof Float32Array ? "f32" : column instanceof Float64Array ? "f64" : "u32";
    shelf.write({ kind: columnTag(dtype), digest, bytes: bytesOf(column) });
    return digest;
  };

  test("the forger's tools alone change nothing", async () => {
    expect(await failure(await forge("token", () => {}))).toBe("read");
    expect(await failure(await forge("step", () => {}))).toBe("read");
  });

  test("a shard that is not there, and a column shorter than it says", async () => {
    const { shelf, digest } = sealBatch(sampleBatch("token", 20));
    const { shards } = await readRecord(shelf.read, TrainerBatch, digest);
    const shard = await readRecord(shelf.read, BatchShard, shards[1]!.digest);
    if (shard.data.level !== "token") throw new Error("not a token shard");
    const { digest: column } = shard.data.columns.ids;
    const whole = shelf.blobs.get(column)!;
    shelf.blobs.set(column, { ...whole, bytes: whole.bytes.subarray(4) });
    expect(await failure({ shelf, digest })).toBe("length-mismatch");
    shelf.blobs.delete(shards[1]!.digest);
    expect(await failure({ shelf, digest })).toBe("missing-blob");
  });

  test("a source that the batch does not have, and counts other than its own", async () => {
    expect(await failure(await forge("token", ({ rows }) => (rows[0]!.segments[0]![2] = 9)))).toBe(
      "bad-record",
    );
    expect(await failure(await forge("step", ({ rows }) => (rows[0]!.samples -= 1)))).toBe("bad-record");
  });

  test("numbers that are not finite, choices and candidates that are not there", async () => {
    const token = forge("token", ({ data }, shelf) => {
      if (data.level !== "token") return;
      const { logprobs } = data.columns;
      logprobs.digest = place(shelf, new Float32Array(logprobs.length).fill(Number.NaN));
    });
    expect(await failure(await token)).toBe("non-finite-number");
    const step = (
      name: "chosen" | "candidateIds" | "candidateCounts" | "candidateProbability",
      value: number,
    ) =>
      forge("step", ({ data }, shelf) => {
        if (data.level !== "step") return;
        const column = data.columns[name];
        const values =
          column.dtype === "f64" ? new Float64Array(column.length) : new Uint32Array(column.length);
        column.digest = place(shelf, values.fill(value));
      });
    expect(await failure(await step("chosen", 100))).toBe("bad-record");
    expect(await failure(await step("candidateIds", 10_000))).toBe("bad-record");
    expect(await failure(await step("candidateCounts", 100))).toBe("length-mismatch");
    expect(await failure(await step("candidateProbability", 1.5))).toBe("bad-record");
  });
});
