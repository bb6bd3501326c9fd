import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { python } from "../../../scripts/python.mjs";
import * as requirement from "../../../scripts/setup/python-zarr.mjs";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import { describeNeeding } from "../../../test/support/needs.ts";
import { ReplayWorld } from "../../../test/support/replay-world.ts";
import { manualClock } from "../../base/clock.ts";
import { compactReplay, openReplay, readDense, writeReplay } from "./index.ts";
import { arrayPaths } from "./tables/schema.ts";
import { bytesOver, type NumericValues } from "./zarr/codecs/data-types.ts";
import { FileStore, openArray } from "./zarr/index.ts";

const EXAMPLES = fileURLToPath(new URL("../../../examples", import.meta.url));

/** Runs a Python program; what it prints is JSON. */
function runPython(
  program: string,
  ...args: string[]
): { status: number | null; stderr: string; value: unknown } {
  const head =
    "import json, sys, warnings\nwarnings.simplefilter('ignore')\nimport numpy as np, zarr, xarray\n";
  const { status, stdout, stderr } = spawnSync(python, ["-c", head + program, ...args], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, PYTHONPATH: EXAMPLES },
  });
  return { status, stderr, value: status === 0 ? JSON.parse(stdout) : undefined };
}

const SHOW = `
def show(values):
    if values.dtype.kind in "OTU": return [str(v) for v in values.reshape(-1)]
    return np.ascontiguousarray(values).tobytes().hex()
`;

function show(values: unknown): unknown {
  return Array.isArray(values) ? values : Buffer.from(bytesOver(values as NumericValues)).toString("hex");
}

await describeNeeding(requirement, "Python", () => {
  const folder = fastFolder("replay-python");
  const [segmented, plain, packed] = ["segmented", "plain", "packed"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  beforeAll(async () => {
    const quick = { clock: manualClock(1), durable: false } as const;
    const world = new ReplayWorld({ seed: 2 });
    world.add(16);
    await writeReplay({
      root: segmented,
      read: world.read,
      rollouts: world.rollouts,
      limits: { candidates: 25 },
      ...quick,
    });
    await compactReplay({ from: segmented, to: plain, ...quick });
    const layout = { codec: "zstd", chunkBytes: 64, shardChunks: 3 } as const;
    await compactReplay({ from: segmented, to: packed, layout, ...quick });
  });

  it.each([
    ["plain", () => plain],
    ["compressed and sharded", () => packed],
  ])("zarr reads every array of a compacted store (%s) with equal values", async (_, root) => {
    const { value, stderr } = runPython(
      `${SHOW}
group = zarr.open_consolidated(sys.argv[1], mode="r")
print(json.dumps({f"{table}/{name}": show(array[:]) for table, child in group.groups() for name, array in child.arrays()}))`,
      root(),
    );
    expect(stderr).toBe("");
    const store = new FileStore(root());
    const expected: Record<string, unknown> = {};
    for (const { path } of arrayPaths()) expected[path] = show(await (await openArray(store, path)).read());
    store.close();
    expect(value).toEqual(expected);
  });

  it("xarray opens each table as a dataset with named dimensions", async () => {
    const { value, stderr } = runPython(
      `q = xarray.open_zarr(sys.argv[1], group="q_h", mask_and_scale=False, consolidated=False)
steps = xarray.open_zarr(sys.argv[1], group="steps", mask_and_scale=False, consolidated=False)
print(json.dumps({"sizes": dict(q.sizes), "label": float(np.nansum(q.label.values)), "steps": dict(steps.sizes),
  "reward": float(np.nansum(steps.reward.values)), "about": q.label.attrs["description"]}))`,
      plain,
    );
    expect(stderr).toBe("");
    const store = await openReplay(plain);
    const { supervision, states, width } = await readDense(store);
    store.close();
    expect(value).toMatchObject({ sizes: { state: states, candidate: width }, steps: { step: states } });
    const label = supervision.label.reduce((sum, each) => sum + (Number.isNaN(each) ? 0 : each), 0);
    expect((value as { label: number }).label).toBeCloseTo(label, 9);
  });

  it("the example loads q_h of a segmented store as we do, and refuses damage", async () => {
    const load = () =>
      runPython(
        `${SHOW}
from read_replay import load_q_h
print(json.dumps({name: [list(values.shape), str(values.dtype), show(values)] for name, values in load_q_h(sys.argv[1]).items()}))`,
        segmented,
      );
    const { value, stderr } = load();
    expect(stderr).toBe("");
    const store = await openReplay(segmented);
    expect(store.segments.length).toBeGreaterThan(1);
    const { actor, supervision } = await readDense(store);
    store.close();
    const read = value as Record<string, [number[], string, string]>;
    for (const [name, values] of Object.entries({ ...actor, ...supervision }))
      expect([name, read[name]![2]]).toEqual([name, show(values)]);
    const chunk = join(segmented, "segments", "s000002", "chains", "content", "c", "0", "0");
    const bytes = readFileSync(chunk);
    bytes[5]! ^= 1;
    writeFileSync(chunk, bytes);
    const damaged = load();
    expect(damaged.status).toBe(1);
    expect(damaged.stderr).toContain("the manifest says");
  });
});
