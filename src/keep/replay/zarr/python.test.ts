import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { python } from "../../../../scripts/python.mjs";
import * as requirement from "../../../../scripts/setup/python-zarr.mjs";
import { describeNeeding } from "../../../../test/support/needs.ts";
import { bits, sampleMatrix, writeSample } from "../../../../test/support/zarr-samples.ts";
import { consolidate, createArray, FileStore, openArray, openGroup, writeGroup } from "./index.ts";

/** Runs a Python program with zarr, numpy and json imported; its standard output is JSON. */
function runPython<T>(program: string, ...args: string[]): T {
  const head = "import json, sys, warnings\nwarnings.simplefilter('ignore')\nimport zarr, numpy as np\n";
  const { status, stdout, stderr } = spawnSync(python, ["-c", head + program, ...args], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}

const SHOW = `
def show(array):
    values = array[:]
    if array.dtype.kind in "OTU": return [str(v) for v in values.reshape(-1)]
    return np.ascontiguousarray(values).tobytes().hex()
`;

await describeNeeding(requirement, "Python's zarr 3", () => {
  const root = mkdtempSync(join(tmpdir(), "rollbook-zarr-python-"));
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  it("reads every type and layout we write, one by one and consolidated, with equal values", async () => {
    const folder = join(root, "ours");
    const store = new FileStore(folder);
    await writeGroup(store, "", { schema: "x.v1" });
    await writeGroup(store, "deep");
    const samples = sampleMatrix();
    for (const [name, sample] of samples) await writeSample(store, `deep/${name}`, { sample });
    await consolidate(store, "");
    const read = runPython<Record<string, unknown>[]>(
      `${SHOW}
plain = zarr.open_group(sys.argv[1], mode="r", use_consolidated=False)
whole = zarr.open_consolidated(sys.argv[1], mode="r")
assert whole.metadata.consolidated_metadata is not None and dict(whole.attrs) == {"schema": "x.v1"}
print(json.dumps([{name: show(group["deep"][name]) for name in group["deep"].array_keys()} for group in (plain, whole)]))`,
      folder,
    );
    const expected = Object.fromEntries([...samples].map(([name, sample]) => [name, bits(sample.values)]));
    expect(read[0]).toEqual(expected);
    expect(read[1]).toEqual(expected);
  });

  it("and xarray see our dimension names, attributes and shapes", async () => {
    const folder = join(root, "named");
    const store = new FileStore(folder);
    await writeGroup(store, "", { kind: "dense" });
    const names = { dimensionNames: ["state", "candidate"], attributes: { unit: "gain" } };
    const label = createArray(store, "label", { dtype: "float32", row: [3], chunkRows: 2, ...names });
    await label.append(Float32Array.from([1, 2, Number.NaN, 4, 5, 6, 7, 8, 9]));
    await label.close();
    const source = createArray(store, "source", { dtype: "int64", dimensionNames: ["state"] });
    await source.append(BigInt64Array.of(-1n, 2n ** 62n, 3n));
    await source.close();
    await consolidate(store, "");
    const seen = runPython<object>(
      `import xarray
data = xarray.open_zarr(sys.argv[1], consolidated=True, mask_and_scale=False)
print(json.dumps({"sizes": dict(data.sizes), "attrs": data.attrs, "unit": data.label.attrs["unit"],
  "source": [str(v) for v in data.source.values], "sum": float(np.nansum(data.label.values))}))`,
      folder,
    );
    expect(seen).toEqual({
      sizes: { state: 3, candidate: 3 },
      attrs: { kind: "dense" },
      unit: "gain",
      source: ["-1", String(2n ** 62n), "3"],
      sum: 42,
    });
  });

  it("writes every type and layout that we read, with equal values", async () => {
    const folder = join(root, "theirs");
    const expected = runPython<Record<string, unknown>>(
      `${SHOW}
from zarr.codecs import GzipCodec, ZstdCodec, Crc32cCodec
group = zarr.open_group(sys.argv[1], mode="w", attributes={"by": "python"})
rng = np.random.default_rng(0)
types = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64".split()
chains = {"none": [], "gzip": [GzipCodec(level=5)], "zstd": [ZstdCodec(level=3)], "zstdsum": [ZstdCodec(checksum=True)],
          "crc": [Crc32cCodec()], "zstdcrc": [ZstdCodec(), Crc32cCodec()]}
for chain, codecs in chains.items():
    for shards in (None, (10, 3)):
        for dtype in types + ["string"]:
            name = f"{dtype}-{chain}-{'shards' if shards else 'chunks'}"
            array = group.create_array(name, shape=(23, 3), chunks=(5, 3), shards=shards, compressors=codecs or None,
                                       dtype="str" if dtype == "string" else dtype)
            if dtype == "string": array[:] = np.array([["", "né", "日本" * i] for i in range(23)], dtype=object)
            else: array[:] = rng.integers(0, 2 if dtype == "bool" else 100, (23, 3)).astype(dtype)
zarr.consolidate_metadata(sys.argv[1])
print(json.dumps({name: show(array) for name, array in group.arrays()}))`,
      folder,
    );
    expect(Object.keys(expected)).toHaveLength(6 * 2 * 12);
    const store = new FileStore(folder);
    const group = await openGroup(store, "");
    expect(group.attributes).toEqual({ by: "python" });
    for (const [name, values] of Object.entries(expected)) {
      const metadata = group.consolidated!.get(name);
      expect(metadata).toEqual((await openArray(store, name)).metadata);
      expect([name, bits(await (await openArray(store, name)).read())]).toEqual([name, values]);
    }
    store.close();
  });

  it("leaves out chunks of fill values, which we refuse: our arrays have every chunk", async () => {
    const folder = join(root, "sparse");
    runPython<null>(
      `group = zarr.open_group(sys.argv[1], mode="w")
for shards in (None, (4,)):
    array = group.create_array("shards" if shards else "chunks", shape=(10,), chunks=(2,), shards=shards, dtype="i4", fill_value=-1)
    array[2:4] = 7
print("null")`,
      folder,
    );
    const store = new FileStore(folder);
    for (const name of ["chunks", "shards"]) {
      await expect((await openArray(store, name)).read()).rejects.toThrow("is missing");
    }
  });
});
