/** The cost of routing in a gateway. Each gateway is asked for a model by name and for the routed alias, in turns of
 *  one process, so that the two differ in nothing else. Routers: a static table, a learned policy, and one with a
 *  shadow. Throughput and processor time per call (serving thread and other threads) at 32 connections, in pairs of
 *  short slices over the same connections. Latency at 300 requests/s: every second request is routed and compared with
 *  its neighbours, which met the same pause. Intervals come from resampled rounds. `--against` also measures another
 *  build. `--folder /dev/shm` keeps books in memory, where a sync costs nothing. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { RollbookError, rngFrom } from "../src/base/index.ts";
import { routingWorld } from "../test/support/routing-world.ts";
import { MAIN, requireBuild } from "./support/build.ts";
import { type AskedGateway, openGateways, type Prompts } from "./support/gateway/contenders.ts";
import { type Load, percentile } from "./support/gateway/load.ts";
import { measureParts } from "./support/gateway/measure-parts.ts";
import { addedLatency, kindsOf, type LatencySlice } from "./support/gateway/paired-latency.ts";
import { mainThreadUs, otherThreadsUs } from "./support/gateway/thread-time.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

const CONNECTIONS = 32;
const PER_SECOND = 300;
/** Milliseconds that a router may add to the p99 at that rate. */
const P99_BAR_MS = 0.3;
const MODELS = "models: { cheap: { upstream: up }, strong: { upstream: up } }";
const [NAMED, ROUTED] = ["cheap", "auto"] as const;

/** Figures by round. */
interface Figures {
  readonly rate: number[];
  readonly threadUs: number[];
  readonly othersUs: number[];
}

interface Measured {
  readonly label: string;
  readonly named: Figures;
  readonly routed: Figures;
  readonly latencies: LatencySlice[];
}

export const bench: Bench = {
  summary: "what a router adds to a gateway's calls: throughput, latency, time of the serving thread",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rounds: { type: "string", default: "40" },
        "slice-ms": { type: "string", default: "300" },
        /** Only `rate` or only `latency`, if the machine is available for a short time. `parts`: without sockets and
         *  disk, if other processes use the machine. */
        only: { type: "string" },
        /** Routers to measure, as a list of: table, policy, shadow. */
        routers: { type: "string", default: "table,policy,shadow" },
        /** The `dist` folder of another build. */
        against: { type: "string" },
        /** Folder of the books. */
        folder: { type: "string", default: tmpdir() },
        /** `one`: all calls have the same text. `many`: each rollout has its own text, more than a policy caches. */
        prompts: { type: "string", default: "one" },
        /** The exploration bonus of the learned policy.
         *  With 0, the default of `train linucb`, no variance is computed. */
        alpha: { type: "string", default: "0.1" },
        json: { type: "boolean", default: false },
      },
    });
    requireBuild();
    const { only, against } = values;
    if (only !== undefined && only !== "rate" && only !== "latency" && only !== "parts")
      throw new RollbookError("bad-only", { only }, `--only ${only} is none of rate, latency, parts.`);
    if (values.prompts !== "one" && values.prompts !== "many")
      throw new RollbookError("bad-prompts", {}, `--prompts ${values.prompts} is neither one nor many.`);
    const prompts: Prompts = values.prompts;
    const scratch = mkdtempSync(join(values.folder, "rollbook-bench-router-"));
    const policy = trainPolicy(scratch, values.alpha);
    if (only === "parts") {
      printTable(await measureParts(scratch, partsOf(policy), Number(values.rounds)), args);
      rmSync(scratch, { recursive: true, force: true });
      return;
    }
    const wanted = values.routers.split(",");
    const routers = routersWith(policy).filter(({ id }) => wanted.includes(id));
    const builds = [
      { dist: undefined, of: "" },
      ...(against === undefined ? [] : [{ dist: against, of: ` of ${against}` }]),
    ];
    const opening = routers.flatMap(({ label, router }) =>
      builds.map(({ dist, of }) => ({
        ...{ label: ` ${label}${of}`, settings: `${MODELS}\nrouter: { ${router} }` },
        ...{ models: [NAMED, ROUTED], ...(dist === undefined ? {} : { dist }) },
      })),
    );
    const { gateways, close } = await openGateways(scratch, opening, prompts);
    try {
      const measured = await measure(gateways, {
        ...{ rounds: Number(values.rounds), sliceMs: Number(values["slice-ms"]) },
        ...{ rates: only !== "latency", latencies: only !== "rate" },
      });
      printTable(measured.map(rowOf), args);
    } finally {
      close();
      rmSync(scratch, { recursive: true, force: true });
    }
  },
};

function partsOf(policy: string) {
  return [
    { label: "static table", policy: "table", prompts: "one" },
    { label: "learned policy", policy, prompts: "one" },
    { label: "learned policy", policy, prompts: "many" },
  ];
}

function routersWith(policy: string) {
  const learned = `checkpoint: ${policy}, allowUngated: true`;
  return [
    { id: "table", label: "static table", router: "exploration: 0.02" },
    { id: "policy", label: "learned policy", router: learned },
    {
      ...{ id: "shadow", label: "learned policy and shadow" },
      router: `${learned}, shadow: { checkpoint: ${policy} }`,
    },
  ];
}

function trainPolicy(scratch: string, alpha: string): string {
  const data = join(scratch, "decisions.jsonl");
  writeFileSync(
    data,
    routingWorld(2000, 3)
      .map((row) => `${JSON.stringify(row)}\n`)
      .join(""),
  );
  const out = join(scratch, "policy");
  const words = ["train", "linucb", "--data", data, "--out", out, "--id", "bench", "--alpha", alpha];
  execFileSync(process.execPath, [MAIN, ...words], { cwd: scratch, stdio: "ignore" });
  return out;
}

interface Turns {
  readonly rounds: number;
  readonly sliceMs: number;
  readonly rates: boolean;
  readonly latencies: boolean;
}

/** Each gateway has its turn in every round; the first three rounds are a warm-up and do not count. */
async function measure(gateways: readonly AskedGateway[], turns: Turns): Promise<Measured[]> {
  const empty = (): Figures => ({ rate: [], threadUs: [], othersUs: [] });
  const measured = gateways.map((gateway) => ({
    ...{ gateway, label: gateway.inTurn.name, named: empty(), routed: empty() },
    latencies: [] as LatencySlice[],
  }));
  for (let round = 0; round < WARM_UP + turns.rounds; round++)
    for (const { gateway, ...into } of measured) {
      const { named, routed } = round < WARM_UP ? { named: empty(), routed: empty() } : into;
      const pair = [
        { model: NAMED, into: named },
        { model: ROUTED, into: routed },
      ];
      // The order alternates, because the second kind runs in the process state that the first left.
      if (turns.rates) await measureRates(gateway, round % 2 === 0 ? pair : pair.reverse(), turns.sliceMs);
      if (!turns.latencies) continue;
      const slice = await measureLatency(gateway, { round, sliceMs: turns.sliceMs });
      if (round >= WARM_UP) into.latencies.push(slice);
    }
  return measured;
}

const WARM_UP = 3;

/** Both kinds over the same connections: two equal sets of connections may differ by a third of the cost of routing. */
async function measureRates(
  { asked, inTurn }: AskedGateway,
  kinds: readonly { model: string; into: Figures }[],
  sliceMs: number,
): Promise<void> {
  const { pid } = inTurn;
  await inTurn.with(CONNECTIONS, "whole", async (load: Load) => {
    // The connections are new: accepting them is not part of a call.
    await load.closedLoop(OPENING_MS);
    for (const { model, into } of kinds) {
      const [beforeUs, othersBeforeUs, startMs] = [mainThreadUs(pid), otherThreadsUs(pid), performance.now()];
      const rate = await load.closedLoop(sliceMs, () => asked[model]!.request("whole"));
      // The last replies come after the slice, and their calls count.
      const calls = (rate * (performance.now() - startMs)) / 1000;
      into.rate.push(rate);
      into.threadUs.push((mainThreadUs(pid) - beforeUs) / calls);
      into.othersUs.push((otherThreadsUs(pid) - othersBeforeUs) / calls);
    }
  });
}

const OPENING_MS = 5;

/** An odd number of requests, so that slices begin alternately with a named and a routed request. After a pause two
 *  requests leave together, and the second waits for the first. */
async function measureLatency(
  { inTurn }: AskedGateway,
  { round, sliceMs }: { round: number; sliceMs: number },
): Promise<LatencySlice> {
  const requests = 1 + 2 * Math.max(1, Math.round((PER_SECOND * sliceMs) / 2000));
  const ms = (1000 * requests) / PER_SECOND + 1e-6;
  const replies = await inTurn.with(64, "whole", (load: Load) => load.openLoop(PER_SECOND, ms));
  return { times: replies.map(({ totalMs }) => totalMs), routed: round % 2 === 0 ? 1 : 0 };
}

function rowOf({ label, named, routed, latencies }: Measured): Record<string, string | number> {
  const row: Record<string, string | number> = { gateway: label };
  if (routed.rate.length > 0) {
    const ratios = routed.rate.map((rate, i) => rate / named.rate[i]!);
    const addedUs = routed.threadUs.map((us, i) => us - named.threadUs[i]!);
    const othersUs = routed.othersUs.map((us, i) => us - named.othersUs[i]!);
    const pairs = routed.threadUs.map((us, i) => ({ named: named.threadUs[i]!, routed: us }));
    Object.assign(row, {
      "calls/s by name": Math.round(median(named.rate)),
      "routed, ×": median(ratios).toFixed(3),
      "(95 %)": textOf(interval(ratios, median), 3),
      "thread µs/call": median(named.threadUs).toFixed(1),
      "added µs": median(addedUs).toFixed(1),
      "(95 %) ": textOf(interval(addedUs, median), 1),
      "added, %": ((100 * median(addedUs)) / median(named.threadUs)).toFixed(1),
      "others, added µs": median(othersUs).toFixed(1),
      "(95 %)   ": textOf(interval(othersUs, median), 1),
      "quiet µs/call": percentile(named.threadUs, QUIET).toFixed(1),
      "added quiet µs": quietAdded(pairs).toFixed(1),
      "(95 %)  ": textOf(interval(pairs, quietAdded), 1),
    });
  }
  if (latencies.length > 0)
    for (const [name, share] of [
      ["p50", 0.5],
      ["p99", 0.99],
    ] as const) {
      const { named: by, routed: to } = kindsOf(latencies);
      const added = (slices: readonly LatencySlice[]) => addedLatency(slices, share);
      const within = interval(latencies, added);
      Object.assign(row, {
        [`${name} ms`]: `${percentile(by, share).toFixed(2)} → ${percentile(to, share).toFixed(2)}`,
        [`added ${name} ms`]: added(latencies).toFixed(3),
        [`(95 %), ${name}`]: textOf(within, 3),
      });
      if (name === "p99") row["rounds to decide"] = roundsToDecide(latencies.length, within);
    }
  return row;
}

/** Other processes only add to the time of a slice, through the caches that they fill. The figure is the upper end of
 *  the fastest tenth of a kind's slices. */
const QUIET = 0.1;

function quietAdded(pairs: readonly { readonly named: number; readonly routed: number }[]): number {
  const of = (kind: "named" | "routed") =>
    percentile(
      pairs.map((pair) => pair[kind]),
      QUIET,
    );
  return of("routed") - of("named");
}

const RESAMPLES = 400;

/** The middle 95 % of a figure over rounds resampled with replacement. */
function interval<T>(rounds: readonly T[], figure: (rounds: readonly T[]) => number): [number, number] {
  const rng = rngFrom(1);
  const figures = Array.from({ length: RESAMPLES }, () =>
    figure(rounds.map(() => rounds[rng.below(rounds.length)]!)),
  );
  return [percentile(figures, 0.025), percentile(figures, 0.975)];
}

function textOf([from, to]: [number, number], digits: number): string {
  return `${from.toFixed(digits)} … ${to.toFixed(digits)}`;
}

/** Number of rounds after which the interval's half width is half of the bar. The width shrinks with the root of the
 *  number. A router that adds less than half of the bar is then decided. */
function roundsToDecide(rounds: number, [from, to]: [number, number]): number {
  return Math.ceil(rounds * ((to - from) / P99_BAR_MS) ** 2);
}
