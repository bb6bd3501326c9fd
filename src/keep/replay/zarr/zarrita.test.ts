import { describe, expect, it } from "vitest";
import * as zarr from "zarrita";
import { bits, randomValues, sampleMatrix, writeSample } from "../../../../test/support/zarr-samples.ts";
import { rngFrom } from "../../../base/rng.ts";
import type { Values } from "./codecs/data-types.ts";
import { consolidate, createArray, openArray, openGroup, writeGroup } from "./index.ts";

type Bytes = Map<string, Uint8Array>;

/** Our store with the keys of zarrita, which have a leading slash. */
function forZarrita(store: Bytes) {
  return {
    get: async (key: string) => store.get(key.slice(1)),
    async getRange(key: string, range: { offset: number; length: number } | { suffixLength: number }) {
      const bytes = store.get(key.slice(1));
      if ("suffixLength" in range) return bytes?.slice(-range.suffixLength);
      return bytes?.slice(range.offset, range.offset + range.length);
    },
    async set(key: string, bytes: Uint8Array) {
      store.set(key.slice(1), bytes);
    },
  };
}

const asBytes = (dtype: string, data: unknown): Values =>
  dtype === "bool" ? Uint8Array.from(data as Iterable<number>) : (data as Values);

/** zarrita's decoder reads a leading U+FEFF as a byte order mark and drops it. */
const withoutMarks = (values: Values): Values =>
  Array.isArray(values) ? values.map((text) => text.replace(/^\ufeff/, "")) : values;

describe("zarrita", () => {
  it("reads every type and layout we write, with equal values", async () => {
    const store: Bytes = new Map();
    const root = zarr.root(forZarrita(store));
    for (const [name, sample] of sampleMatrix()) {
      await writeSample(store, name, { sample });
      const array = await zarr.open(root.resolve(name), { kind: "array" });
      const { data, shape } = await zarr.get(array);
      expect([name, shape]).toEqual([name, [sample.rows, ...(sample.options.row ?? [])]]);
      expect([name, bits(asBytes(array.dtype, data))]).toEqual([name, bits(withoutMarks(sample.values))]);
    }
  });

  it("reads attributes, and finds the arrays of a consolidated tree without listing", async () => {
    const store: Bytes = new Map();
    await writeGroup(store, "", { schema: "x.v1" });
    await writeGroup(store, "steps", { of: "chains" });
    const writer = createArray(store, "steps/reward", { dtype: "float32", attributes: { unit: "gain" } });
    await writer.append(Float32Array.of(1, 2));
    await writer.close();
    await consolidate(store, "");
    const opened = await zarr.withConsolidatedMetadata(forZarrita(store), { format: "v3" });
    expect(
      opened
        .contents()
        .map(({ path, kind }) => `${kind} ${path}`)
        .sort(),
    ).toEqual(["array /steps/reward", "group /", "group /steps"]);
    const array = await zarr.open(zarr.root(opened).resolve("steps/reward"), { kind: "array" });
    expect(array.attrs).toEqual({ unit: "gain" });
    expect((await openGroup(store, "")).consolidated?.get("steps/reward")).toMatchObject({ shape: [2] });
  });

  it.each(["int8", "int16", "int32", "uint8", "uint16", "uint32", "float32", "float64"] as const)(
    "writes %s that we read, plain and as zstd",
    async (dtype) => {
      const bytes = { name: "bytes", configuration: { endian: "little" } };
      for (const codecs of [[bytes], [bytes, { name: "zstd", configuration: { level: 1 } }]]) {
        const store: Bytes = new Map();
        const data = randomValues(dtype, 23 * 3, rngFrom(3));
        const options = { shape: [23, 3], chunkShape: [5, 3], dtype, codecs, fillValue: 0, dataType: dtype };
        const target = zarr.root(forZarrita(store)).resolve("a");
        const array: unknown = await zarr.create(target, options as never);
        await zarr.set(array as never, null, { data, shape: [23, 3], stride: [3, 1] } as never);
        expect(bits(await (await openArray(store, "a")).read())).toEqual(bits(data));
      }
    },
  );
});
