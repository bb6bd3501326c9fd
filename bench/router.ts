/** What routing costs a gateway: each gateway is asked for a model by its name and for the routed alias, in turns of one
 *  process, so that the two differ in nothing else. A static table, a learned policy, and one with a shadow. Throughput at
 *  32 connections, latency at 300 requests/s, time of the serving thread per call. `--against` measures another build, too. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { RollbookError } from "../src/base/index.ts";
import { routingWorld } from "../test/support/routing-world.ts";
import { MAIN, requireBuild } from "./support/build.ts";
import { type AskedGateway, type Contender, openGateways } from "./support/gateway/contenders.ts";
import { percentile } from "./support/gateway/load.ts";
import { mainThreadUs } from "./support/gateway/thread-time.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

const CONNECTIONS = 32;
const PER_SECOND = 300;
const MODELS = "models: { cheap: { upstream: up }, strong: { upstream: up } }";
const [NAMED, ROUTED] = ["cheap", "auto"] as const;

/** One figure of every round; the latencies of all. */
interface Figures {
  readonly rate: number[];
  readonly threadUs: number[];
  readonly latencyMs: number[];
  readonly p99Ms: number[];
}

interface Measured {
  readonly label: string;
  readonly named: Figures;
  readonly routed: Figures;
}

export const bench: Bench = {
  summary: "what a router adds to a gateway's calls: throughput, latency, time of the serving thread",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rounds: { type: "string", default: "8" },
        "slice-ms": { type: "string", default: "1500" },
        /** `rate` or `latency` alone, where the machine is lent for a short time. */
        only: { type: "string" },
        /** Routers to measure, as a list of: table, policy, shadow. */
        routers: { type: "string", default: "table,policy,shadow" },
        /** The `dist` folder of another build. */
        against: { type: "string" },
        json: { type: "boolean", default: false },
      },
    });
    requireBuild();
    const { only, against } = values;
    if (only !== undefined && only !== "rate" && only !== "latency")
      throw new RollbookError("bad-only", { only }, `--only ${only} is neither rate nor latency.`);
    const scratch = mkdtempSync(join(tmpdir(), "rollbook-bench-router-"));
    const wanted = values.routers.split(",");
    const routers = routersWith(trainPolicy(scratch)).filter(({ id }) => wanted.includes(id));
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
    const { gateways, close } = await openGateways(scratch, opening);
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

function trainPolicy(scratch: string): string {
  const data = join(scratch, "decisions.jsonl");
  writeFileSync(
    data,
    routingWorld(2000, 3)
      .map((row) => `${JSON.stringify(row)}\n`)
      .join(""),
  );
  const out = join(scratch, "policy");
  const words = ["train", "linucb", "--data", data, "--out", out, "--id", "bench", "--alpha", "0.1"];
  execFileSync(process.execPath, [MAIN, ...words], { cwd: scratch, stdio: "ignore" });
  return out;
}

interface Turns {
  readonly rounds: number;
  readonly sliceMs: number;
  readonly rates: boolean;
  readonly latencies: boolean;
}

/** Each has its turn in every round; the first round warms up and does not count. */
async function measure(gateways: readonly AskedGateway[], turns: Turns): Promise<Measured[]> {
  const empty = (): Figures => ({ rate: [], threadUs: [], latencyMs: [], p99Ms: [] });
  const measured = gateways.map(({ asked }) => ({
    ...{ asked, label: asked[NAMED]!.name, named: empty(), routed: empty() },
  }));
  for (let round = 0; round <= turns.rounds; round++)
    for (const { asked, named, routed } of measured) {
      const [first, second] = [
        { contender: asked[NAMED]!, into: named },
        { contender: asked[ROUTED]!, into: routed },
      ];
      // Whoever comes second finds the process as the first left it: they take turns in that, too.
      for (const { contender, into } of round % 2 === 0 ? [first, second] : [second, first])
        await measureTurn(contender, turns, round === 0 ? empty() : into);
    }
  return measured;
}

async function measureTurn(
  contender: Contender,
  { sliceMs, rates, latencies }: Turns,
  into: Figures,
): Promise<void> {
  if (rates) {
    const before = mainThreadUs(contender.pid);
    const rate = await contender.with(CONNECTIONS, "whole", (load) => load.closedLoop(sliceMs));
    into.rate.push(rate);
    into.threadUs.push((mainThreadUs(contender.pid) - before) / ((rate * sliceMs) / 1000));
  }
  if (!latencies) return;
  const steady = await contender.with(64, "whole", (load) => load.openLoop(PER_SECOND, sliceMs));
  const times = steady.map(({ totalMs }) => totalMs);
  into.latencyMs.push(...times);
  into.p99Ms.push(percentile(times, 0.99));
}

function rowOf({ label, named, routed }: Measured): Record<string, string | number> {
  const ratios = routed.rate.map((rate, i) => rate / named.rate[i]!);
  const threadUs = routed.threadUs.map((us, i) => us - named.threadUs[i]!);
  const addedMs = routed.p99Ms.map((p99, i) => p99 - named.p99Ms[i]!);
  const row: Record<string, string | number> = { gateway: label };
  if (ratios.length > 0)
    Object.assign(row, {
      "calls/s by name": Math.round(median(named.rate)),
      "routed, ×": median(ratios).toFixed(3),
      "(quartiles)": quartiles(ratios, 3),
      "thread µs/call": median(named.threadUs).toFixed(1),
      "added µs": median(threadUs).toFixed(1),
      "(quartiles) ": quartiles(threadUs, 1),
      "added, %": ((100 * median(threadUs)) / median(named.threadUs)).toFixed(1),
    });
  if (addedMs.length > 0)
    Object.assign(row, {
      "p50 ms": `${percentile(named.latencyMs, 0.5).toFixed(2)} → ${percentile(routed.latencyMs, 0.5).toFixed(2)}`,
      "p99 ms": `${percentile(named.latencyMs, 0.99).toFixed(2)} → ${percentile(routed.latencyMs, 0.99).toFixed(2)}`,
      "added p99 ms, median": median(addedMs).toFixed(2),
      "(quartiles)  ": quartiles(addedMs, 2),
    });
  return row;
}

function quartiles(values: readonly number[], digits: number): string {
  return `${percentile(values, 0.25).toFixed(digits)} … ${percentile(values, 0.75).toFixed(digits)}`;
}
