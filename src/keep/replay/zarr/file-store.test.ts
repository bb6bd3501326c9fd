import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bits, sampleMatrix, writeSample } from "../../../../test/support/zarr-samples.ts";
import { createArray, FileStore, openArray } from "./index.ts";

const LARGE = 700_000;
let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rollbook-zarr-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("values of a file store", () => {
  const open = () => new FileStore(join(root, "deep/store"));

  it("are given back as they were set, small or large, until they are replaced", async () => {
    const store = open();
    for (const size of [0, 10, LARGE]) {
      const bytes = new Uint8Array(size).map((_, i) => i);
      await store.set("a/b", bytes);
      expect(Buffer.compare((await store.get("a/b"))!, bytes)).toBe(0);
      const parts = [new Uint8Array(3), new Uint8Array(2)];
      expect(await store.readInto("a/b", parts, 1)).toBe(size);
      expect(parts.map((part) => [...part])).toEqual(
        size === 0
          ? [
              [0, 0, 0],
              [0, 0],
            ]
          : [
              [1, 2, 3],
              [4, 5],
            ],
      );
    }
    expect(await store.get("a/c")).toBeUndefined();
    expect(await store.readInto("a/c", [new Uint8Array(1)], 0)).toBeUndefined();
    await store.commit();
    store.close();
  });

  it("are read from the end, and as far as they go", async () => {
    const store = open();
    for (const size of [100, LARGE]) {
      await store.set("k", new Uint8Array(size).fill(7, size - 4));
      const part = new Uint8Array(4);
      expect(await store.readInto("k", [part], -4)).toBe(size);
      expect([...part]).toEqual([7, 7, 7, 7]);
      const beyond = new Uint8Array(size + 5).fill(1);
      expect(await store.readInto("k", [beyond], 0)).toBe(size);
      expect([...beyond.subarray(size)]).toEqual([1, 1, 1, 1, 1]);
    }
    store.close();
  });

  it("are listed without temporary files that a killed writer left", async () => {
    const store = open();
    await store.set("a/b/c", new Uint8Array(1));
    await store.set("a/d", new Uint8Array(LARGE));
    await store.set("e", new Uint8Array(1));
    writeFileSync(join(store.root, "a/d.123-4.tmp"), "half");
    expect([...store.keys()].sort()).toEqual(["a/b/c", "a/d", "e"]);
    expect([...store.keys("a/b")]).toEqual(["a/b/c"]);
    expect([...new FileStore(join(root, "nowhere")).keys()]).toEqual([]);
  });

  it("stay as they are, without a temporary file, when a write fails", async () => {
    const store = open();
    await store.set("a", Buffer.from("old"));
    mkdirSync(join(store.root, "blocked"));
    for (const bytes of [new Uint8Array(1), new Uint8Array(LARGE)])
      await expect((async () => store.set("blocked", bytes))()).rejects.toThrow("cannot write blocked");
    expect(readdirSync(store.root).sort()).toEqual(["a", "blocked"]);
    expect(readFileSync(join(store.root, "a"), "utf8")).toBe("old");
  });
});

describe("a file store", () => {
  it.each(["", "/a", "a//b", "../a", "a/../b", "a/.", "a.tmp"])("refuses the key %j", async (key) => {
    const store = new FileStore(root);
    await expect((async () => store.get(key))()).rejects.toThrow("not a key");
    await expect((async () => store.set(key, new Uint8Array()))()).rejects.toThrow("not a key");
  });

  it("reads new content after another set, though it keeps files open", async () => {
    const store = new FileStore(root);
    const part = new Uint8Array(1);
    for (const byte of [1, 2, 3]) {
      await store.set("k", Uint8Array.of(byte));
      await store.readInto("k", [part], 0);
      expect(part[0]).toBe(byte);
    }
    store.close();
  });

  it("says so when a file shrinks under it", async () => {
    const store = new FileStore(root);
    await store.set("k", new Uint8Array(10));
    await store.readInto("k", [new Uint8Array(1)], 0);
    truncateSync(join(root, "k"), 4);
    await expect((async () => store.readInto("k", [new Uint8Array(10)], 0))()).rejects.toThrow("shrunk");
    store.close();
  });

  it("keeps a bounded number of files open over any number of chunks", async () => {
    const store = new FileStore(root);
    const writer = createArray(store, "a", { dtype: "uint8", chunkRows: 1, crc32c: false });
    await writer.append(new Uint8Array(400).map((_, i) => i));
    await writer.close();
    const before = readdirSync("/proc/self/fd").length;
    const array = await openArray(store, "a");
    expect([...(await array.gather([...Array(400).keys()].reverse()))].slice(0, 3)).toEqual([143, 142, 141]);
    expect(readdirSync("/proc/self/fd").length - before).toBeLessThanOrEqual(128);
    store.close();
    expect(readdirSync("/proc/self/fd").length).toBeLessThanOrEqual(before);
  });

  it("holds arrays of every type and layout, and rows are read in place from files", async () => {
    const store = new FileStore(root);
    for (const [name, sample] of sampleMatrix()) await writeSample(store, name, { sample });
    await store.commit();
    for (const [name, sample] of sampleMatrix()) {
      const array = await openArray(store, name, { cacheBytes: 0 });
      expect(bits(await array.read())).toEqual(bits(sample.values));
      expect(bits(await array.gather([...Array(sample.rows).keys()]))).toEqual(bits(sample.values));
      expect(bits(await array.read({ from: 7, to: 9 }))).toEqual(
        bits(sample.values.slice(7 * array.width, 9 * array.width)),
      );
    }
    store.close();
    expect(existsSync(join(root, "int8-none-bare-0-1/zarr.json"))).toBe(true);
  });

  it("moves large chunks in the background, and finds a flipped byte in each", async () => {
    const store = new FileStore(root);
    const values = new Float64Array(500_000).map((_, i) => Math.sqrt(i));
    const writer = createArray(store, "a", { dtype: "float64" });
    await writer.append(values.subarray(0, 77_777));
    await writer.append(values.subarray(77_777));
    const { metadata } = await writer.close();
    expect(metadata.chunkRows * 8).toBe(1 << 20);
    const array = await openArray<"float64">(store, "a");
    expect(bits(await array.read())).toEqual(bits(values));
    const path = join(root, "a/c/2");
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(bytes[54_321]! ^ 4, 54_321, 54_322));
    await expect(array.read()).rejects.toThrow("a/c/2 has crc32c");
  });
});
