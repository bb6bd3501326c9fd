/** What routing costs a gateway: the same gateway asked for a model by name, through a static table, and through a learned
 *  policy with a shadow. Turns in one run: throughput at 32 connections, latency at 300 requests/s, time of the serving
 *  thread per call. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { RollbookError } from "../src/base/index.ts";
import { routingWorld } from "../test/support/routing-world.ts";
import { MAIN, requireBuild } from "./support/build.ts";
import { type Contender, openGateways } from "./support/gateway/contenders.ts";
import { percentile } from "./support/gateway/load.ts";
import { mainThreadUs } from "./support/gateway/thread-time.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

const CONNECTIONS = 32;
const PER_SECOND = 300;
const MODELS = "models: { cheap: { upstream: up }, strong: { upstream: up } }";

interface Figures {
  readonly rate: number[];
  readonly threadUs: number[];
  readonly latencyMs: number[];
  readonly p99Ms: number[];
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
        json: { type: "boolean", default: false },
      },
    });
    requireBuild();
    const scratch = mkdtempSync(join(tmpdir(), "rollbook-bench-router-"));
    const policy = trainPolicy(scratch);
    const learned = `checkpoint: ${policy}, allowUngated: true`;
    const { contenders, close } = await openGateways(scratch, [
      { label: " by name", settings: MODELS, model: "cheap" },
      { label: " static table", settings: `${MODELS}\nrouter: { exploration: 0.02 }`, model: "auto" },
      { label: " learned policy", settings: `${MODELS}\nrouter: { ${learned} }`, model: "auto" },
      {
        ...{ label: " learned policy and shadow", model: "auto" },
        settings: `${MODELS}\nrouter: { ${learned}, shadow: { checkpoint: ${policy} } }`,
      },
    ]);
    try {
      const { rounds, only } = values;
      if (only !== undefined && only !== "rate" && only !== "latency")
        throw new RollbookError("bad-only", { only }, `--only ${only} is neither rate nor latency.`);
      const figures = await measure(contenders, {
        ...{ rounds: Number(rounds), sliceMs: Number(values["slice-ms"]) },
        ...{ rates: only !== "latency", latencies: only !== "rate" },
      });
      printTable(
        contenders.map(({ name }) => rowOf(name, figures.get(name)!, figures.get(contenders[0]!.name)!)),
        args,
      );
    } finally {
      close();
      rmSync(scratch, { recursive: true, force: true });
    }
  },
};

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
async function measure(
  contenders: readonly Contender[],
  { rounds, sliceMs, rates, latencies }: Turns,
): Promise<Map<string, Figures>> {
  const figures = new Map<string, Figures>(
    contenders.map(({ name }) => [name, { rate: [], threadUs: [], latencyMs: [], p99Ms: [] }]),
  );
  for (let round = 0; round <= rounds; round++)
    for (const contender of contenders) {
      const into = round === 0 ? undefined : figures.get(contender.name)!;
      if (rates || round === 0) {
        const before = mainThreadUs(contender.pid);
        const rate = await contender.with(CONNECTIONS, "whole", (load) => load.closedLoop(sliceMs));
        into?.rate.push(rate);
        into?.threadUs.push((mainThreadUs(contender.pid) - before) / ((rate * sliceMs) / 1000));
      }
      if (!latencies) continue;
      const steady = await contender.with(64, "whole", (load) => load.openLoop(PER_SECOND, sliceMs));
      const times = steady.map(({ totalMs }) => totalMs);
      into?.latencyMs.push(...times);
      into?.p99Ms.push(percentile(times, 0.99));
    }
  return figures;
}

function rowOf(name: string, own: Figures, first: Figures): Record<string, string | number> {
  const ratios = own.rate.map((rate, i) => rate / first.rate[i]!);
  const threads = own.threadUs.map((us, i) => us / first.threadUs[i]!);
  const added = own.p99Ms.map((p99, i) => p99 - first.p99Ms[i]!);
  const row: Record<string, string | number> = { gateway: name };
  if (ratios.length > 0)
    Object.assign(row, {
      "calls/s": Math.round(median(own.rate)),
      "× by name": median(ratios).toFixed(3),
      "(least … most)": spread(ratios),
      "thread µs/call": median(own.threadUs).toFixed(0),
      "thread × by name": median(threads).toFixed(3),
      "(quartiles)": quartiles(threads),
    });
  if (added.length > 0)
    Object.assign(row, {
      "p50 ms": percentile(own.latencyMs, 0.5).toFixed(2),
      "p99 ms": percentile(own.latencyMs, 0.99).toFixed(2),
      "added p99, median": median(added).toFixed(2),
      "(quartiles) ": quartiles(added),
    });
  return row;
}

function spread(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(2)} … ${Math.max(...values).toFixed(2)}`;
}

function quartiles(values: readonly number[]): string {
  return `${percentile(values, 0.25).toFixed(2)} … ${percentile(values, 0.75).toFixed(2)}`;
}
