/** Replay stores of any size, and the times of their parts: facts, the dense view, reads, validation.
 *  Chains of four steps with eight candidates each, as in routing and tool choice; features only on request. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Digest, digestJson } from "../../src/base/digest.ts";
import { parseId } from "../../src/base/ids.ts";
import { rngFrom } from "../../src/base/rng.ts";
import type { RolloutContent } from "../../src/contract/rollout/rollout.ts";
import type { Step } from "../../src/contract/rollout/stream.ts";
import {
  DEFAULT_RETURNS,
  minibatches,
  openReplay,
  readDense,
  validateReplay,
} from "../../src/keep/replay/index.ts";
import { commitManifest, sealReplayManifest } from "../../src/keep/replay/tables/manifest.ts";
import { openSegment } from "../../src/keep/replay/tables/open-segment.ts";
import { ReasonNames } from "../../src/keep/replay/tables/reason-names.ts";
import { addChain } from "../../src/keep/replay/write/chain-rows.ts";
import { writeDenseView } from "../../src/keep/replay/write/dense-writer.ts";
import { SegmentWriter } from "../../src/keep/replay/write/segment-writer.ts";
import { writerOf } from "../../src/keep/replay/write/write-session.ts";
import { FileStore } from "../../src/keep/replay/zarr/index.ts";

/** One row per size. The times of building q_h and reading must grow with the candidates; memory must not. */
export async function growStores(folder: string): Promise<Record<string, string | number>[]> {
  const rows = [];
  for (const candidates of [10_000, 100_000, 1_000_000]) {
    const root = join(folder, `replay-${candidates}`);
    await makeStore(root, candidates);
    const times = await timeStore(root);
    rows.push({
      candidates: times.candidates,
      "build q_h, ms": times.build,
      "ns each": (times.build * 1e6) / times.candidates,
      "read q_h, ms": times.read,
      "minibatches/s": times.batches,
      "validate, ms": times.validate,
      "validate, peak MB": peakOfValidation(root),
    });
    rmSync(root, { recursive: true });
  }
  return rows;
}

/** Peak memory of a process that validates the store, Node and compiler included. */
function peakOfValidation(root: string): number {
  const program = `import { validateReplay } from ${JSON.stringify(new URL("../../src/keep/replay/index.ts", import.meta.url).href)};
const { valid } = await validateReplay(${JSON.stringify(root)});
if (!valid) process.exit(1);
console.log(process.resourceUsage().maxRSS / 1024);`;
  const args = ["--import", "tsx", "--input-type=module", "-e", program];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return Math.round(Number(stdout));
}

const STEPS = 4;
const WIDTH = 8;
const OPTIONS = { returns: DEFAULT_RETURNS, layout: {} } as const;

interface StoreWidths {
  readonly context: number;
  readonly features: number;
}

/** A plain store with `candidates` candidates, written through the same rows as any other store. `context`, `features`:
 *  number of values per decision and per candidate. */
export async function makeStore(
  root: string,
  candidates: number,
  wide: StoreWidths = { context: 0, features: 0 },
): Promise<void> {
  mkdirSync(root, { recursive: true });
  const segment = new SegmentWriter({
    ...OPTIONS,
    directory: root,
    path: "",
    reasons: new ReasonNames(),
    writer: writerOf(),
    createdAtMs: 0,
    durable: false,
  });
  const chains = Math.ceil(candidates / (STEPS * WIDTH));
  for (let i = 0; i < chains; i++) {
    const content = contentAt(i, wide);
    const digest = digestJson("bench.rollout", i);
    await addChain(segment, { digest, content, task: undefined, streamIndex: 0, columns: undefined });
  }
  const entry = await segment.close();
  const manifest = sealReplayManifest({
    layout: "plain",
    generation: 1,
    returns: DEFAULT_RETURNS,
    reasons: [],
    segments: [entry],
  });
  commitManifest(root, manifest);
}

export interface ReplayTimes {
  candidates: number;
  /** Times in milliseconds. */
  build: number;
  read: number;
  validate: number;
  /** Minibatches of 256 states per second, including masks and labels. */
  batches: number;
}

/** Builds and writes q_h again from the facts of a store, then reads the store in every way. */
export async function timeStore(root: string): Promise<ReplayTimes> {
  const build = await best(3, () => buildAgain(root));
  const store = await openReplay(root);
  const read = await best(3, () => readDense(store));
  let count = 0;
  const start = performance.now();
  for await (const _ of minibatches(store, { size: 256, rng: rngFrom(1), epochs: 20 })) {
    if (++count === 400) break;
  }
  const batches = (1000 * count) / (performance.now() - start);
  const candidates = store.rows("candidates");
  store.close();
  return { candidates, build, read, validate: await best(1, () => validateReplay(root)), batches };
}

async function buildAgain(root: string): Promise<void> {
  const store = await openReplay(root);
  const { entry } = await openSegment(root, store.manifest.segments[0]!).then((opened) => {
    opened.store.close();
    return opened;
  });
  const target = join(root, "..", "rebuilt");
  if (existsSync(target)) rmSync(target, { recursive: true });
  const built = await writeDenseView(new FileStore(target), store.segments[0]!.reader, OPTIONS);
  store.close();
  for (const { path, digests } of built)
    if (entry.arrays[path] !== digests.array) throw new Error(`${path} was built differently`);
}

async function best(rounds: number, work: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    await work();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

const REVISION = { id: parseId("r1"), digest: digestJson("bench.weights", 1) };
const NAMES = Array.from({ length: WIDTH }, (_, i) => `candidate-${i}`);

function contentAt(index: number, { context, features }: StoreWidths): RolloutContent {
  const numbers = (length: number, from: number) =>
    Array.from({ length }, (_, k) => ((index * 31 + from * 17 + k * 7) % 101) / 101);
  const steps: Step[] = [];
  for (let i = 0; i < STEPS; i++) {
    const chosen = (index + i) % WIDTH;
    steps.push({
      revision: REVISION,
      turn: i,
      ...(context === 0 ? {} : { context: numbers(context, i) }),
      candidates: NAMES.map((id, k) => ({
        id,
        selectable: true,
        reasons: [],
        probability: 1 / WIDTH,
        ...(features === 0 ? {} : { features: numbers(features, k) }),
        ...(k % 2 === 0 ? { label: ((index * 31 + k) % 97) / 97 } : {}),
      })),
      chosen,
      before: STEPS - i,
      after: STEPS - i - 1,
      reward: (index % 10) / 10,
    });
  }
  return {
    schema: "rollbook.rollout-content.v1",
    rolloutId: parseId(`rollout-${index}`),
    environment: "env.bench@1" as RolloutContent["environment"],
    task: { id: parseId(`task-${index % 1000}`) },
    seed: BigInt(index),
    dataSource: "synthetic",
    sampling: {},
    calls: [] as Digest[],
    streams: [{ level: "step", family: parseId("router"), steps }],
    scores: [],
    ending: { kind: "terminal" },
  };
}
