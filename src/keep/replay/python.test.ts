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

const PACKAGE = fileURLToPath(new URL("../../../python", import.meta.url));

const QUIET = "import json, sys, warnings\nwarnings.simplefilter('ignore')\n";

/** Runs a Python program and parses its output as JSON. */
function runPython(
  program: string,
  ...args: string[]
): { status: number | null; stderr: string; value: unknown } {
  const { status, stdout, stderr } = spawnSync(python, ["-c", program, ...args], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, PYTHONPATH: PACKAGE },
  });
  return { status, stderr, value: status === 0 ? JSON.parse(stdout) : undefined };
}

const SHOW = `
import json, sys
import numpy as np
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
      `${QUIET}import zarr\n${SHOW}
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
      `${QUIET}import numpy as np, xarray
q = xarray.open_zarr(sys.argv[1], group="q_h", mask_and_scale=False, consolidated=False)
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

  it.each([
    ["segmented", () => segmented],
    ["compacted", () => plain],
    ["compressed and sharded", () => packed],
  ])("the Python package loads q_h of a store (%s) as we do", async (_, root) => {
    const { value, stderr } = runPython(
      `${SHOW}
from rollbook import ReplayStore
store = ReplayStore(sys.argv[1])
assert store.verify() > 0
print(json.dumps({name: show(values) for name, values in store.dense().items()}))`,
      root(),
    );
    expect(stderr).toBe("");
    const store = await openReplay(root());
    const { actor, supervision } = await readDense(store);
    store.close();
    const read = value as Record<string, string>;
    for (const [name, values] of Object.entries({ ...actor, ...supervision }))
      expect([name, read[name]]).toEqual([name, show(values)]);
  });

  it("the Python package joins the tables of segments as compaction does", async () => {
    const columns = (root: string) => {
      const { value, stderr } = runPython(
        `${SHOW}
from rollbook import ReplayStore
store = ReplayStore(sys.argv[1])
chains, steps = store.table("chains"), store.table("steps")
print(json.dumps([store.rows["steps"], list(chains["rollout"]), store.texts(chains["ending"]), show(steps["chain"]),
  show(steps["candidates_start"]), store.texts(steps["policy_id"])]))`,
        root,
      );
      expect(stderr).toBe("");
      return value as unknown[];
    };
    const store = await openReplay(segmented);
    expect(store.segments.length).toBeGreaterThan(1);
    store.close();
    expect(columns(segmented)).toEqual(columns(plain));
  });

  it("the Python package refuses a store with a changed chunk or manifest, and says where", () => {
    const check = (call: string) =>
      runPython(
        `import sys\nfrom rollbook import ReplayStore\nReplayStore(sys.argv[1]).${call}\nprint("{}")`,
        segmented,
      );
    const chunk = join(segmented, "segments", "s000002", "chains", "content", "c", "0", "0");
    const bytes = readFileSync(chunk);
    bytes[5]! ^= 1;
    writeFileSync(chunk, bytes);
    expect(check("dense()").status).toBe(0);
    for (const call of ["verify()", 'column("chains", "content")']) {
      const { status, stderr } = check(call);
      expect(status).toBe(1);
      expect(stderr).toContain("s000002/chains/content: content is");
    }
    const manifest = join(segmented, "manifest.json");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace('"generation":', '"generation":1'));
    expect(check("dense()").stderr).toContain("manifest.json: content is");
  });
});
