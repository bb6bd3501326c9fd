import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeStore } from "../../../bench/support/replay-build.ts";
import { fastFolder } from "../../../test/support/fast-folder.ts";
import { rejectionOf } from "../../../test/support/refusal-of.ts";
import { rewriteColumn } from "../../../test/support/replay-tamper.ts";
import { ReplayWorld } from "../../../test/support/replay-world.ts";
import { manualClock } from "../../base/clock.ts";
import { rngFrom } from "../../base/rng.ts";
import { writeReplay } from "../../keep/replay/index.ts";
import {
  DEFAULT_SPLIT,
  returnsToGo,
  type StoredLearner,
  TRAIN_ON_ALL,
  trainCql,
  trainNeuralBc,
} from "../../learn/index.ts";
import { loadDecisions } from "../decisions/index.ts";
import { readsChains } from "./learners.ts";
import { trainPolicy } from "./train.ts";

const folder = fastFolder("learn-from-store");
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const split = { ...DEFAULT_SPLIT, shares: TRAIN_ON_ALL };
const small = { hidden: [16], steps: 40, every: 20, batch: 16 };

describe("a network trained from a replay store", () => {
  /** The store has chains of several lengths, missing rewards and probabilities, contexts of two widths, every ending,
   *  and four segments. */
  const store = join(folder, "store");
  beforeAll(async () => {
    const [narrow, wide] = [2, 5].map((contextWidth) => {
      const world = new ReplayWorld({ seed: contextWidth, contextWidth });
      world.add(80);
      return world;
    }) as [ReplayWorld, ReplayWorld];
    const quick = { clock: manualClock(1), durable: false, limits: { candidates: 200 } };
    await writeReplay({
      root: join(folder, "narrow"),
      read: narrow.read,
      rollouts: narrow.rollouts,
      ...quick,
    });
    await writeReplay({ root: store, read: wide.read, rollouts: wide.rollouts, ...quick });
  });

  const learners: Record<string, StoredLearner> = {
    "cql on single decisions": { kind: "cql", ...small },
    "cql on chains, two members": { kind: "cql", ...small, discount: 0.9, members: 2, targetEvery: 10 },
    "cql from returns": { kind: "cql", ...small, discount: 0.9, goal: "return" },
    "neural-bc": { kind: "neural-bc", ...small },
  };
  for (const root of ["store", "narrow"])
    it.each(Object.keys(learners))(
      `has the bits that the same rows in memory give (${root}): %s`,
      async (name) => {
        const source = { replay: join(folder, root) };
        const learner = learners[name]!;
        const trained = await trainPolicy(source, { learner, id: "r-1", split, seed: 3n });
        const { rows } = await loadDecisions(source, {});
        const { kind, ...config } = learner;
        const train = kind === "cql" ? trainCql : trainNeuralBc;
        // A learner of chains sums rewards itself; the others learn from returns.
        const taught = readsChains(learner) ? rows : returnsToGo(rows, 1);
        const { model, report } = train({ rows: taught, digest: trained.data }, config, rngFrom(3n));
        expect(trained.rows).toBe(rows.length);
        expect(trained.report).toEqual(report);
        for (const [tensor, { data }] of Object.entries(model.tensors))
          expect(trained.model.tensors[tensor]!.data).toEqual(data);
        expect(trained.model.spec).toEqual(model.spec);
      },
    );

  it("does not depend on an array of the derived view, whose digest is not checked", async () => {
    const root = join(folder, "changed");
    const world = new ReplayWorld({ seed: 4, contextWidth: 3 });
    world.add(40);
    const quick = { clock: manualClock(1), durable: false };
    await writeReplay({ root, read: world.read, rollouts: world.rollouts, ...quick });
    const learner = learners["neural-bc"]!;
    const train = async () =>
      (await trainPolicy({ replay: root }, { learner, id: "r-1", split })).model.tensors;
    const sound = await train();
    const manifest = readFileSync(join(root, "manifest.json"));
    await rewriteColumn<Int32Array>(root, "q_h/source", { change: (sources) => sources.fill(0) });
    writeFileSync(join(root, "manifest.json"), manifest);
    expect(await train()).toEqual(sound);
  });

  it("refuses what rows in memory refuse: no rows, another split, another feature spec", async () => {
    const train = (over: object) =>
      rejectionOf(
        trainPolicy({ replay: store }, { learner: learners["neural-bc"]!, id: "r-1", split, ...over }),
      );
    expect(await train({ family: "nobody" })).toMatchObject({ code: "empty-split" });
    expect(await train({ sinceMs: 1 })).toMatchObject({ code: "wrong-usage" });
    const spec = {
      schema: "rollbook.feature-spec.v1",
      wordBuckets: 0,
      maxWords: 1,
      fields: [],
      candidate: ["c0"],
    };
    expect(await train({ learner: { kind: "cql", ...small, spec } })).toMatchObject({
      code: "bad-feature-spec",
    });
  });
});

it("it learns within a heap that the rows of the store do not fit into", async () => {
  const [heapMb, rows] = [80, 8_000];
  const root = join(folder, "large");
  await makeStore(root, 8 * rows, { context: 48, features: 40 });
  const module = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const inChild = (flags: readonly string[], program: string) => {
    const args = [...flags, "--input-type=module", "-e", program];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(stderr).toBe("");
    return Number(stdout);
  };
  const source = `{ replay: ${JSON.stringify(root)} }`;
  const held = inChild(
    ["--expose-gc", "--import", "tsx"],
    `import { loadDecisions } from ${module("../decisions/index.ts")};
const { rows } = await loadDecisions(${source}, {});
for (const { context } of rows) context.fields;
gc();
console.log(process.memoryUsage().heapUsed / 2 ** 20);
if (rows.length === 0) throw new Error("no rows");`,
  );
  expect(held).toBeGreaterThan(1.1 * heapMb);
  // Fitting the static table uses its own sample and takes most of the time, so it is off here.
  const request = { learner: { kind: "cql", ...small, discount: 0.9 }, id: "r-1", split, baseline: false };
  const learned = inChild(
    [`--max-old-space-size=${heapMb}`],
    `import { trainPolicy } from ${module("../../../dist/index.js")};
console.log((await trainPolicy(${source}, ${JSON.stringify(request)})).rows);`,
  );
  expect(learned).toBe(rows);
}, 240_000);
