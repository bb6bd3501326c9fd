import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import {
  anyBatch,
  type ExpectedRow,
  type RandomBatch,
  sampleBatch,
  sealBatch,
} from "../../../test/support/random-batches.ts";
import {
  plainRow,
  type ReadBack,
  readJsonl,
  readNpz,
  readParquet,
  readSafetensors,
} from "../../../test/support/read-exports.ts";
import type { Digest } from "../../base/digest.ts";
import { readBatch } from "../../keep/batch/index.ts";
import { writeNewFile } from "../new-file.ts";
import { EXPORT_FORMATS, type ExportFormat, exportBatch } from "./index.ts";
import { writeNpz } from "./write-npz.ts";

const folder = fastFolder("batch-export");
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let files = 0;
const newPath = () => join(folder, `file-${files++}`);

const READERS: Record<ExportFormat, (path: string) => ReadBack | Promise<ReadBack>> = {
  jsonl: readJsonl,
  npz: readNpz,
  safetensors: readSafetensors,
  parquet: readParquet,
};

async function exported(random: RandomBatch, format: ExportFormat) {
  const { shelf, digest } = sealBatch(random);
  const batch = await readBatch(shelf.read, digest);
  const rows: ExpectedRow[] = [];
  for await (const row of batch.rows()) rows.push(row);
  const out = newPath();
  const { bytes } = await exportBatch(batch, { format, out });
  return { batch, rows, out, bytes };
}

describe.each(EXPORT_FORMATS)("a batch exported as %s", (format) => {
  test("reads back as the rows of readBatch, value for value", async () => {
    await fc.assert(
      fc.asyncProperty(anyBatch, async (random) => {
        const { rows, out, bytes } = await exported(random, format);
        expect((await READERS[format](out)).rows).toEqual(rows.map(plainRow));
        expect(readFileSync(out).length).toBe(bytes);
        rmSync(out);
      }),
      { numRuns: 60 },
    );
  });

  test("keeps rows that are long or many, and the sign of every zero among equal values", async () => {
    const [first] = sampleBatch("token", 1).rows;
    if (first?.level !== "token") throw new Error("not a token row");
    const rowOf = (length: number) => ({
      ...first,
      samples: length,
      segments: [{ ...first.segments[0]!, start: 0, end: length }],
      ids: Uint32Array.from({ length }, (_, i) => i),
      mask: new Uint8Array(length).fill(1),
      turns: new Uint32Array(length),
      logprobs: Float32Array.from({ length }, (_, i) => -(i % 100)),
      rewards: Float32Array.from({ length }, (_, i) => (i % 3 === 0 ? -0 : 0)),
      advantages: new Float32Array(length).fill(0.5),
    });
    const rows = [rowOf(140_000), ...Array.from({ length: 9000 }, (_, i) => rowOf(1 + (i % 3)))];
    const { out, rows: read } = await exported({ level: "token", shardTokens: 150_000, rows }, format);
    const found = await READERS[format](out);
    expect(found.rows).toHaveLength(rows.length);
    // Uses a loop, because a failing toEqual on so much data would take minutes to print.
    const differs = found.rows.findIndex((row, i) => !isDeepStrictEqual(row, plainRow(read[i]!)));
    expect(differs).toBe(-1);
  });

  test("says which batch it is, and from what it was cut", async () => {
    const { batch, out } = await exported(sampleBatch("step", 3), format);
    const { provenance } = await READERS[format](out);
    expect(provenance).toMatchObject({
      schema: "rollbook.batch-export.v1",
      batch: batch.digest,
      manifest: batch.record.manifest,
      target: batch.record.target,
      seed: "18446744073709551615",
      options: batch.record.options,
      totals: batch.record.totals,
    });
    expect(
      (provenance.sources as { id: string; drift: string }[]).map(({ id, drift }) => [id, drift]),
    ).toEqual(batch.sources.map(({ id, drift }) => [id, String(drift)]));
  });

  test("is the same file every time", async () => {
    const [a, b] = [
      await exported(sampleBatch("token", 30), format),
      await exported(sampleBatch("token", 30), format),
    ];
    expect(readFileSync(a.out).equals(readFileSync(b.out))).toBe(true);
  });

  test("never replaces a file, and leaves none behind where a shard is damaged or absent", async () => {
    const { shelf, digest } = sealBatch(sampleBatch("token", 60));
    const batch = await readBatch(shelf.read, digest);
    const taken = newPath();
    writeFileSync(taken, "mine");
    await expect(exportBatch(batch, { format, out: taken })).rejects.toMatchObject({ code: "exists" });
    expect(readFileSync(taken, "utf8")).toBe("mine");
    shelf.blobs.delete(batch.record.shards.at(-1)!.digest as Digest);
    const before = readdirSync(folder);
    await expect(exportBatch(batch, { format, out: newPath() })).rejects.toMatchObject({
      code: "missing-blob",
    });
    expect(readdirSync(folder)).toEqual(before);
  });
});

describe("an npz file", () => {
  test("past the limits of 32 bits is a ZIP64 archive, which reads the same", async () => {
    const { shelf, digest } = sealBatch(sampleBatch("step", 20));
    const batch = await readBatch(shelf.read, digest);
    const [plain, wide] = [newPath(), newPath()];
    await exportBatch(batch, { format: "npz", out: plain });
    await writeNewFile(wide, (file) => writeNpz(batch, file, { zip64From: 1000 }));
    expect(readFileSync(wide).length).toBeGreaterThan(readFileSync(plain).length);
    expect(readNpz(wide)).toEqual(readNpz(plain));
  });

  test("refuses the one text that numpy cannot hold: a name that ends in NUL", async () => {
    const random = sampleBatch("step", 1);
    const row = random.rows[0]!;
    if (row.level !== "step") throw new Error("not a step row");
    const step = row.steps[0]!;
    const candidates = [{ id: "a\0", probability: 1, selectable: true }];
    const { shelf, digest } = sealBatch({
      ...random,
      rows: [
        {
          ...row,
          samples: 1,
          segments: [{ ...row.segments[0]!, end: 1 }],
          steps: [{ ...step, chosen: 0, candidates }],
        },
      ],
    });
    const batch = await readBatch(shelf.read, digest);
    await expect(exportBatch(batch, { format: "npz", out: newPath() })).rejects.toMatchObject({
      code: "not-representable",
    });
    const out = newPath();
    await exportBatch(batch, { format: "safetensors", out });
    expect(readSafetensors(out).rows[0]).toMatchObject({ steps: [{ candidates }] });
  });
});

describe("a file that is being written", () => {
  test("appears under its name only when it is whole, and not where another appeared meanwhile", async () => {
    const path = newPath();
    await writeNewFile(path, (file) => {
      file.append(Buffer.from("a"));
      expect(readdirSync(folder).filter((name) => join(folder, name) === path)).toEqual([]);
    });
    expect(readFileSync(path, "utf8")).toBe("a");
    const late = newPath();
    const racing = writeNewFile(late, () => writeFileSync(late, "other"));
    await expect(racing).rejects.toMatchObject({ code: "exists" });
    expect(readFileSync(late, "utf8")).toBe("other");
    expect(readdirSync(folder).filter((name) => name.endsWith(".partial"))).toEqual([]);
  });

  test("gets a name of its own beside the part that a killed process with the same id left", async () => {
    const path = newPath();
    const parts = () => readdirSync(folder).filter((name) => name.endsWith(".partial"));
    let left = "";
    await writeNewFile(path, () => {
      left = join(folder, parts()[0]!);
    });
    rmSync(path);
    writeFileSync(left, "half of a ro");
    await writeNewFile(path, (file) => file.append(Buffer.from("whole")));
    expect([readFileSync(path, "utf8"), readFileSync(left, "utf8")]).toEqual(["whole", "half of a ro"]);
    rmSync(left);
  });

  test("in a folder that does not exist is refused in words", async () => {
    await expect(writeNewFile(join(folder, "no", "file"), () => {})).rejects.toMatchObject({
      code: "no-file",
    });
  });
});
