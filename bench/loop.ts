/** The cost of orchestration: one window through the loop, compared with the same stages called by hand in one process,
 *  and the share of the window outside its stages. `--rollouts N` sets the size of the window, `--pairs N` the number
 *  of pairs of measurements, in turns. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { rngFrom } from "../src/base/index.ts";
import { identityOf } from "../src/book/collect/index.ts";
import { evaluateCheckpoint, gateCheckpoints } from "../src/book/judge/index.ts";
import { keyringOf, openBook } from "../src/book/open/index.ts";
import { trainPolicy } from "../src/book/train/index.ts";
import { behaviourRouter } from "../src/collect/sim/index.ts";
import { parseLoopConfig } from "../src/loop/config.ts";
import { runLoop } from "../src/loop/run-loop.ts";
import { drawRows, simWorld } from "../src/loop/world/index.ts";
import { LOOP, writeLoop } from "../test/support/loop-world.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

export const bench: Bench = {
  summary: "one window through the loop against the same stages called by hand",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rollouts: { type: "string", default: "288" },
        pairs: { type: "string", default: "5" },
        json: { type: "boolean" },
      },
    });
    const [rollouts, pairs] = [Number(values.rollouts), Number(values.pairs)];
    const pairsOf: Record<"loop" | "hand", Spent>[] = [];
    for (let pair = 0; pair <= pairs; pair++) {
      const arms = [["loop", byLoop] as const, ["hand", byHand] as const];
      if (pair % 2 === 1) arms.reverse();
      const spent: Partial<Record<"loop" | "hand", Spent>> = {};
      for (const [name, arm] of arms) spent[name] = await timed(arm, rollouts);
      if (pair > 0) pairsOf.push(spent as Record<"loop" | "hand", Spent>); // the first pair is a warm-up
    }
    const rows: Record<string, string | number>[] = (["wallMs", "cpuMs"] as const).map((what) => {
      const ratios = pairsOf.map(({ loop, hand }) => loop[what] / hand[what]);
      return {
        time: what === "wallMs" ? "elapsed" : "processor",
        ...{ rollouts, pairs },
        "loop ms": median(pairsOf.map(({ loop }) => loop[what])),
        "by hand ms": median(pairsOf.map(({ hand }) => hand[what])),
        ...{ ratio: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) },
      };
    });
    // A share of the window's own time, so it has no noise between two runs.
    const share = { ratio: median(outside), least: Math.min(...outside), most: Math.max(...outside) };
    rows.push({ time: "outside the stages", rollouts, pairs, "loop ms": "–", "by hand ms": "–", ...share });
    printTable(rows, args);
  },
};

/** Processor time is independent of the machine's load. */
interface Spent {
  readonly wallMs: number;
  readonly cpuMs: number;
}

type Arm = (folder: string, config: string) => Promise<void>;

async function timed(arm: Arm, rollouts: number): Promise<Spent> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-bench-loop-"));
  try {
    const settings = { ...LOOP, windows: 1, rollouts, samples: rollouts / 36 };
    writeLoop(folder, settings);
    identityIn(folder);
    const [start, before] = [performance.now(), process.cpuUsage()];
    await arm(folder, JSON.stringify(settings));
    const { user, system } = process.cpuUsage(before);
    return { wallMs: performance.now() - start, cpuMs: (user + system) / 1000 };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const identityIn = (folder: string) =>
  identityOf(keyringOf({ env: { ROLLBOOK_HOME: folder }, home: folder }));

/** Share of a window's time for planning, assigning and concluding. It has no noise between two runs. */
const outside: number[] = [];

async function byLoop(folder: string, text: string): Promise<void> {
  const config = parseLoopConfig(text, "loop.yaml", folder);
  const book = join(folder, "book");
  const began = performance.now();
  let [last, own] = [began, 0];
  const onWindow = ({ state }: { state: string | undefined }) => {
    const now = performance.now();
    if (["planned", "collecting", "released", "kept"].includes(state!)) own += now - last;
    last = now;
  };
  await runLoop({ config, book, how: "start", identity: () => identityIn(folder), onWindow });
  outside.push(own / (performance.now() - began));
}

/** Calls the functions one after another, as a user's script would. */
async function byHand(folder: string, text: string): Promise<void> {
  const config = parseLoopConfig(text, "loop.yaml", folder);
  const identity = identityIn(folder);
  const book = await openBook(join(folder, "book"), { create: true, signer: () => identity.signer });
  try {
    const world = simWorld(config.world as never);
    const router = behaviourRouter("uniform", { models: world.models });
    world.exact!.value(router);
    const rows = drawRows(world, {
      count: config.rollouts / config.samples,
      rng: rngFrom(0).split("window 1"),
      options: config.options,
    });
    await world.collect({
      ...{
        book,
        identity,
        router,
        model: undefined,
        assigned: world.assign(rows, config.samples),
        experiment: "hand",
        seed: 0n,
      },
      ...{ workers: config.workers, queue: join(folder, "queue.db"), gateway: "sim" },
      ...{ drain: new AbortController().signal, onProgress: () => {}, log: () => {} },
    });
    const out = join(folder, "policy");
    const common = { family: world.family, order: "id" as const, exploration: 0.02, seed: 0n };
    const learner = { kind: "linucb", alpha: 0.1 } as const;
    await trainPolicy(book, { ...{ learner, id: "hand", out, family: world.family }, split: config.split });
    await evaluateCheckpoint(book, { ...common, checkpoint: out });
    await gateCheckpoints(book, { ...common, candidates: [out], baseline: "behaviour", epsilonCost: null });
  } finally {
    await book.close();
  }
}
