import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  anySample,
  bits,
  randomValues,
  type Sample,
  sampleMatrix,
  writeSample,
} from "../../../../test/support/zarr-samples.ts";
import { rngFrom } from "../../../base/rng.ts";
import { createArray, digestStoredArray, openArray, type Store } from "./index.ts";

const widthOf = ({ options }: Sample) => (options.row ?? []).reduce((n, size) => n * size, 1);

describe("an array", () => {
  it("reads back as it was written, whatever its type, chunks, codecs, shards and the size of appends", async () => {
    await fc.assert(
      fc.asyncProperty(anySample, fc.array(fc.nat(20), { maxLength: 5 }), async (sample, pieces) => {
        const store: Store = new Map<string, Uint8Array>();
        await writeSample(store, "a", { sample, pieces });
        const array = await openArray(store, "a");
        expect([array.rows, array.dtype, array.width]).toEqual([
          sample.rows,
          sample.options.dtype,
          widthOf(sample),
        ]);
        expect(bits(await array.read())).toEqual(bits(sample.values));
      }),
      { numRuns: 300 },
    );
  });

  it("does not depend on how its rows were cut into appends, down to the digest", async () => {
    await fc.assert(
      fc.asyncProperty(anySample, fc.array(fc.nat(20), { maxLength: 5 }), async (sample, pieces) => {
        const whole = await writeSample(new Map<string, Uint8Array>(), "a", { sample });
        const cut = await writeSample(new Map<string, Uint8Array>(), "a", { sample, pieces });
        expect(cut).toEqual(whole);
      }),
      { numRuns: 100 },
    );
  });

  it("gives any range of rows, any rows in any order, and its chunks, as the whole read does", async () => {
    await fc.assert(
      fc.asyncProperty(
        anySample,
        fc.nat(),
        fc.nat(),
        fc.array(fc.nat(), { maxLength: 60 }),
        async (sample, a, b, picks) => {
          const store: Store = new Map<string, Uint8Array>();
          await writeSample(store, "a", { sample });
          const array = await openArray(store, "a", { cacheBytes: 200 });
          const { values, rows } = sample;
          const width = widthOf(sample);
          const slice = (from: number, to: number) => values.slice(from * width, to * width);
          const [from, to] = [a % (rows + 1), b % (rows + 1)].sort((x, y) => x - y) as [number, number];
          expect(bits(await array.read({ from, to }))).toEqual(bits(slice(from, to)));
          const picked = rows === 0 ? [] : picks.map((pick) => pick % rows);
          for (const attempt of [1, 2])
            expect([attempt, bits(await array.gather(picked))]).toEqual([
              attempt,
              bits(
                concat(
                  values,
                  picked.map((row) => slice(row, row + 1)),
                ),
              ),
            ]);
          for (const reuse of [false, true]) {
            let next = from;
            for await (const chunk of array.chunks({ from, to, reuse })) {
              expect(chunk.from).toBe(next);
              expect(bits(chunk.values)).toEqual(bits(slice(chunk.from, chunk.to)));
              next = chunk.to;
            }
            expect(next).toBe(to);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it("that fits one chunk is one object of exactly its size", async () => {
    const store = new Map<string, Uint8Array>();
    const writer = createArray(store, "a", { dtype: "int32", crc32c: false, shardChunks: 8 });
    await writer.append(Int32Array.of(1, 2, 3));
    const { metadata } = await writer.close();
    expect(metadata).toMatchObject({ shape: [3], chunkRows: 3, shardRows: 0 });
    expect([...store].map(([key, bytes]) => [key, bytes.length])).toEqual([
      ["a/c/0", 12],
      ["a/zarr.json", expect.any(Number)],
    ]);
  });

  it("whose length is known in advance has equal chunks of about 1 MB", async () => {
    const writer = createArray(new Map<string, Uint8Array>(), "a", {
      dtype: "float64",
      expectedRows: 300_000,
    });
    await writer.append(new Float64Array(300_000));
    expect((await writer.close()).metadata.chunkRows).toBe(100_000);
  });

  it("may be the root of its store", async () => {
    const store = new Map<string, Uint8Array>();
    const writer = createArray(store, "", { dtype: "uint8" });
    await writer.append(Uint8Array.of(1, 2));
    await writer.close();
    expect([...store.keys()]).toEqual(["c/0", "zarr.json"]);
    expect([...((await (await openArray(store, "")).read()) as Uint8Array)]).toEqual([1, 2]);
  });

  it("pads its last chunk with the fill value", async () => {
    const store = new Map<string, Uint8Array>();
    const writer = createArray(store, "a", { dtype: "uint8", chunkRows: 4, crc32c: false });
    await writer.append(Uint8Array.of(1, 2, 3, 4, 5));
    await writer.close();
    expect([...store.get("a/c/1")!]).toEqual([5, 0, 0, 0]);
  });

  it("refuses values of another type, broken rows, bools that are neither, and appends that are not awaited", async () => {
    const store = new Map<string, Uint8Array>();
    const fresh = () => createArray(store, "a", { dtype: "float32", row: [2] });
    await expect(fresh().append(new Float64Array(2) as never)).rejects.toThrow("not an array for float32");
    await expect(fresh().append(new Float32Array(3))).rejects.toThrow("not a whole number of rows of 2");
    await expect(createArray(store, "b", { dtype: "bool" }).append(Uint8Array.of(2))).rejects.toThrow(
      "neither 0 nor 1",
    );
    const writer = fresh();
    const first = writer.append(new Float32Array(2));
    await expect(writer.append(new Float32Array(2))).rejects.toThrow("writer is busy");
    await first;
    await writer.close();
    await expect(writer.append(new Float32Array(2))).rejects.toThrow("writer is closed");
    expect(() => createArray(store, "c", { dtype: "int8", chunkRows: 0 })).toThrow("chunkRows 0");
    expect(() => createArray(store, "c", { dtype: "int8", row: [2 ** 31] })).toThrow("larger than the limit");
    expect(() => createArray(store, "c", { dtype: "int8", dimensionNames: ["a", "b"] })).toThrow(
      "do not name the axes",
    );
    expect(() => createArray(store, "c", { dtype: "int8", compressor: { name: "zstd", level: 99 } })).toThrow(
      "level 99",
    );
  });

  it("refuses rows it does not have, and memory that does not fit", async () => {
    const store = new Map<string, Uint8Array>();
    const writer = createArray(store, "a", { dtype: "int16" });
    await writer.append(Int16Array.of(1, 2, 3));
    await writer.close();
    const array = await openArray<"int16">(store, "a");
    await expect(array.gather([3])).rejects.toThrow("has rows 0 … 2, not 3");
    await expect(array.gather([0.5])).rejects.toThrow("not 0.5");
    await expect(array.read({ from: 2, to: 4 })).rejects.toThrow("has 3 rows");
    await expect(array.read({ into: new Int16Array(2) })).rejects.toThrow("fills 3 items of int16");
    await expect(openArray(store, "b")).rejects.toThrow("no array at b");
  });
});

describe("damage", () => {
  const some = [...sampleMatrix()].filter(([name]) => /^(bool|int64|float32|string)-/.test(name));
  const checked = some.filter(([, { options }]) => options.crc32c);

  it.each(checked)("of any one byte in any object of %s is found", async (_name, sample) => {
    const store = new Map<string, Uint8Array>();
    await writeSample(store, "a", { sample });
    const objects = [...store.keys()].filter((key) => key.includes("/c/"));
    expect(objects.length).toBeGreaterThan(1);
    const rng = rngFrom(1);
    for (const key of objects) {
      const good = store.get(key)!;
      for (let at = 0; at < good.length; at++) {
        store.set(key, Buffer.from(good).fill(good[at]! ^ (1 << rng.below(8)), at, at + 1));
        await expect((await openArray(store, "a")).read()).rejects.toThrow(key);
      }
      store.set(key, good);
    }
    expect(bits(await (await openArray(store, "a")).read())).toEqual(bits(sample.values));
  });

  it.each(some)("by a short, long, empty or missing object of %s is found", async (_name, sample) => {
    const store = new Map<string, Uint8Array>();
    await writeSample(store, "a", { sample });
    for (const key of [...store.keys()].filter((key) => key.includes("/c/"))) {
      const good = store.get(key)!;
      const bad = [
        good.subarray(1),
        good.subarray(0, -1),
        good.subarray(0, good.length >> 1),
        new Uint8Array(),
      ];
      // The formats allow bytes after a compressed stream, and gaps in a shard; the digests detect them.
      const { compressor, shardChunks } = sample.options;
      if (compressor === undefined && shardChunks === 0) bad.push(Buffer.concat([good, good]));
      for (const bytes of bad) {
        store.set(key, bytes);
        await expect((await openArray(store, "a")).read()).rejects.toThrow(key);
      }
      store.delete(key);
      const array = await openArray(store, "a");
      await expect(array.read()).rejects.toThrow("missing");
      await expect(array.gather([...Array(sample.rows).keys()])).rejects.toThrow("missing");
      store.set(key, good);
    }
  });

  it("of unchecked objects is found by their digests", async () => {
    for (const [name, sample] of sampleMatrix()) {
      const store = new Map<string, Uint8Array>();
      const { digests } = await writeSample(store, "a", { sample });
      expect([name, await digestStoredArray(store, "a")]).toEqual([name, digests]);
      const key = [...store.keys()].find((key) => key.includes("/c/"))!;
      store.set(key, Buffer.from(store.get(key)!).fill(store.get(key)![0]! ^ 1, 0, 1));
      expect((await digestStoredArray(store, "a")).array).not.toBe(digests.array);
    }
  });

  it("of the metadata changes the digest of the array", async () => {
    const store = new Map<string, Uint8Array>();
    const sample = {
      rows: 3,
      options: { dtype: "int32" as const },
      values: randomValues("int32", 3, rngFrom(1)),
    };
    const { digests } = await writeSample(store, "a", { sample });
    store.set(
      "a/zarr.json",
      Buffer.from(Buffer.from(store.get("a/zarr.json")!).toString().replace("int32", "uint32")),
    );
    expect((await digestStoredArray(store, "a")).array).not.toBe(digests.array);
  });
});

function concat(like: Sample["values"], parts: Sample["values"][]): Sample["values"] {
  if (Array.isArray(like)) return (parts as string[][]).flat();
  const out = like.slice(0, 0) as Uint8Array;
  const all = new (out.constructor as Uint8ArrayConstructor)(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts as Uint8Array[]) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
