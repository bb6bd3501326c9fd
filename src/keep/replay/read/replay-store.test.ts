import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fastFolder } from "../../../../test/support/fast-folder.ts";
import { rejectionOf } from "../../../../test/support/refusal-of.ts";
import { rewriteColumn } from "../../../../test/support/replay-tamper.ts";
import { ReplayWorld } from "../../../../test/support/replay-world.ts";
import { manualClock } from "../../../base/clock.ts";
import { parseId } from "../../../base/ids.ts";
import { rngFrom } from "../../../base/rng.ts";
import { openRecord } from "../../../contract/codec/record.ts";
import { RolloutContent } from "../../../contract/rollout/rollout.ts";
import {
  actorInputs,
  appendReplay,
  findDifferences,
  findSplitLeaks,
  minibatches,
  openReplay,
  type ReplayStore,
  readDense,
  requireDisjointSplits,
  requireHomogeneous,
  validateReplay,
  writeReplay,
} from "../index.ts";
import { ACTOR_COLUMNS, SUPERVISION_COLUMNS } from "./dense-reader.ts";

const folder = fastFolder("replay-store");
const root = join(folder, "store");
const quick = { clock: manualClock(1), durable: false } as const;
const world = new ReplayWorld({ seed: 11 });
let store: ReplayStore;

beforeAll(async () => {
  world.add(24);
  await writeReplay({ root, read: world.read, rollouts: world.rollouts.slice(0, 12), ...quick });
  await appendReplay({
    root,
    read: world.read,
    rollouts: world.rollouts.slice(12),
    limits: { candidates: 20 },
    ...quick,
  });
  store = await openReplay(root);
});
afterAll(() => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("minibatches", () => {
  const collect = async (seed: number, options: object = {}) => {
    const batches = [];
    for await (const batch of minibatches(store, { size: 7, rng: rngFrom(seed), ...options }))
      batches.push(batch);
    return batches;
  };

  it("draw every state once per epoch, in an order the seed alone decides", async () => {
    const [a, b, c] = [await collect(1), await collect(1), await collect(2)];
    const order = (batches: typeof a) => batches.flatMap(({ states }) => [...states]);
    expect(a).toEqual(b);
    expect(order(a)).not.toEqual(order(c));
    expect(order(a).sort((x, y) => x - y)).toEqual(Array.from({ length: store.rows("q_h") }, (_, i) => i));
    const twice = order(await collect(1, { epochs: 2 }));
    expect(twice.slice(0, twice.length / 2)).toEqual(order(a));
    expect(twice.slice(twice.length / 2)).not.toEqual(order(a));
  });

  it("hold what the dense view holds in those states", async () => {
    const dense = await readDense(store);
    for (const { states, actor, supervision } of await collect(3)) {
      expect(supervision.width).toBe(dense.width);
      for (const [i, state] of states.entries()) {
        expect(supervision.reward[i]).toBe(dense.supervision.reward[state]);
        expect(supervision.next_state[i]).toBe(dense.supervision.next_state[state]);
        const cells = <V extends Uint8Array | Float64Array>(values: V, row: number) =>
          values.slice(row * dense.width, (row + 1) * dense.width);
        expect(cells(supervision.label, i)).toEqual(cells(dense.supervision.label, state));
        expect(cells(supervision.probability, i)).toEqual(cells(dense.supervision.probability, state));
        expect(cells(actor.selectable, i)).toEqual(cells(dense.actor.selectable, state));
      }
    }
  });

  it("show the actor the context and the features of the record, zeros where there is none", async () => {
    const steps = world.rollouts.flatMap((digest) =>
      openRecord(RolloutContent, world.blobs.get(digest)!.bytes).streams.flatMap((stream) =>
        stream.level === "step" ? stream.steps : [],
      ),
    );
    const states = steps.map((_, i) => i).reverse();
    const inputs = await actorInputs(store, states);
    expect(inputs).toMatchObject({
      states: steps.length,
      contextWidth: 3,
      featureWidth: 2,
      width: store.width,
    });
    for (const [i, state] of states.entries()) {
      const { context, candidates } = steps[state]!;
      expect(inputs.context.slice(i * 3, i * 3 + 3)).toEqual(Float32Array.from(context!));
      const features = candidates.flatMap((each) => each.features!);
      const row = inputs.features.slice(i * store.width * 2, (i + 1) * store.width * 2);
      expect(row.slice(0, features.length)).toEqual(Float32Array.from(features));
      expect(row.slice(features.length).every((value) => value === 0)).toBe(true);
    }
  });

  it("come from one split alone when asked", async () => {
    const drawn = (await collect(1, { split: "test" })).flatMap(({ states }) => [...states]);
    const splits: string[] = [];
    for await (const { columns, texts } of store.blocks("sources", ["split"]))
      for (const id of columns.split) splits.push(texts[id]!);
    const { actor } = await readDense(store);
    const expected = Array.from(actor.source, (source, i) => (splits[source] === "test" ? i : -1)).filter(
      (i) => i >= 0,
    );
    expect(drawn.sort((a, b) => a - b)).toEqual(expected);
    expect(expected.length).toBeGreaterThan(0);
    expect(await collect(1, { split: "absent" })).toEqual([]);
  });

  it("of a split are refused where a step names a source that is not there", async () => {
    const damaged = new ReplayWorld();
    const at = join(folder, "no-source");
    await writeReplay({ root: at, read: damaged.read, rollouts: [damaged.addOne({})], ...quick });
    await rewriteColumn<Int32Array>(at, "steps/source", { change: (source) => source.set([9999], 0) });
    const opened = await openReplay(at);
    const first = minibatches(opened, { size: 7, rng: rngFrom(1), split: "train" }).next();
    expect(await rejectionOf(first)).toMatchObject({
      code: "replay-bad-source",
      fields: { step: 0, source: 9999 },
    });
    opened.close();
  });
});

it("what an actor sees and what supervises it have no column in common, and together are the view", () => {
  const all = [...ACTOR_COLUMNS, ...SUPERVISION_COLUMNS, "step"];
  expect(new Set(all).size).toBe(all.length);
  expect(ACTOR_COLUMNS).not.toContain("probability");
});

it("rows run over the whole store: references lead to rows of the store", async () => {
  let row = 0;
  for await (const { from, to, columns } of store.blocks("candidates", ["step", "index"], { rows: 5 })) {
    expect(from).toBe(row);
    row = to;
    for (let i = 0; i < to - from; i++) {
      const { reader, first } = store.segmentOf("steps", columns.step[i]!);
      const { candidates_start } = await reader.read("steps", ["candidates_start"]);
      const start = candidates_start[columns.step[i]! - first.steps]! + first.candidates;
      expect(start + columns.index[i]!).toBe(from + i);
    }
  }
  expect(row).toBe(store.rows("candidates"));
});

describe("a store", () => {
  it("of one piece passes; a mixed one is refused with the field", async () => {
    expect(await findDifferences(store, ["environment", "reward", "oracle"])).toEqual([]);
    const error = await rejectionOf(requireHomogeneous(store));
    expect(error).toMatchObject({
      code: "mixed-store",
      fields: { field: "family", values: ["views", "writer"] },
    });
    await requireHomogeneous(store, ["environment"]);
  });

  it("in which a task stands in two splits is refused with the task", async () => {
    expect(await findSplitLeaks(store)).toEqual([]);
    await requireDisjointSplits(store);
    const leaky = new ReplayWorld();
    const at = join(folder, "leaky");
    // One id under two records would be two tasks; a leak is one task with two splits in the store.
    const task = { id: parseId("task-1") };
    const rollouts = [leaky.addOne({ task }), leaky.addOne({ task })];
    await writeReplay({ root: at, read: leaky.read, rollouts, ...quick });

    await rewriteColumn<Int32Array>(at, "sources/split", {
      change: (split) => split.set([0], split.length - 1),
    });
    const opened = await openReplay(at);
    expect(await rejectionOf(requireDisjointSplits(opened))).toMatchObject({
      code: "split-leak",
      fields: { task: "task-1" },
    });
    opened.close();
    expect((await validateReplay(at)).errors.map(({ code }) => code)).toContain("split");
  });
});

describe("open refuses", () => {
  const broken = (name: string, change: (at: string) => void) => {
    const at = join(folder, name);
    cpSync(root, at, { recursive: true });
    change(at);
    return rejectionOf(openReplay(at));
  };
  const edit = (path: string, from: string | RegExp, to: string) => {
    const text = readFileSync(path, "latin1");
    const edited = text.replace(from, to);
    expect(edited).not.toBe(text);
    writeFileSync(path, edited, "latin1");
  };

  it("a manifest with one digit changed", async () => {
    const error = await broken("digit", (at) =>
      edit(join(at, "manifest.json"), '"generation":2', '"generation":3'),
    );
    expect(error).toMatchObject({ code: "digest-mismatch" });
  });

  it("a manifest of an earlier commit", async () => {
    const early = join(folder, "early");
    await writeReplay({ root: early, read: world.read, rollouts: world.rollouts.slice(0, 2), ...quick });
    const old = readFileSync(join(early, "manifest.json"));
    await appendReplay({ root: early, read: world.read, rollouts: world.rollouts.slice(2, 4), ...quick });
    writeFileSync(join(early, "manifest.json"), old);
    const error = await rejectionOf(openReplay(early));
    expect(error).toMatchObject({ code: "replay-bad-root" });
    expect(error.message).toContain("committed 2 times, manifest.json is of commit 1");
    expect((await validateReplay(early)).errors).toMatchObject([{ array: "zarr.json", code: "root" }]);
  });

  it("a segment whose metadata say another type, or are gone", async () => {
    const path = (at: string) => join(at, "segments", "s000001", "zarr.json");
    expect(
      await broken("dtype", (at) => edit(path(at), '"data_type":"int32"', '"data_type":"uint32"')),
    ).toMatchObject({
      code: "replay-bad-segment",
    });
    expect(await broken("gone", (at) => rmSync(path(at)))).toMatchObject({ code: "replay-bad-segment" });
  });

  it("a root that is not ours", async () => {
    const change = (at: string) => edit(join(at, "zarr.json"), "segmented", "segmental");
    expect(await broken("root", change)).toMatchObject({ code: "replay-bad-root" });
  });

  it("nothing while the root is one commit behind, as after a crash between two renames", async () => {
    const at = join(folder, "behind");
    cpSync(root, at, { recursive: true });
    edit(join(at, "zarr.json"), '"generation":2', '"generation":1');
    (await openReplay(at)).close();
    expect((await validateReplay(at)).errors).toEqual([]);
  });
});

it("a flipped bit in a chunk is refused when the chunk is read", async () => {
  const at = join(folder, "flipped");
  cpSync(root, at, { recursive: true });
  const chunk = join(at, "segments", "s000001", "steps", "reward", "c", "0");
  const bytes = readFileSync(chunk);
  bytes[3]! ^= 16;
  writeFileSync(chunk, bytes);
  const opened = await openReplay(at);
  const read = async () => {
    for await (const _ of opened.blocks("steps", ["reward"]));
  };
  expect(await rejectionOf(read())).toMatchObject({ code: "zarr-damaged" });
  for await (const { columns } of opened.blocks("steps", ["before"]))
    expect(columns.before.length).toBeGreaterThan(0);
  opened.close();
});
