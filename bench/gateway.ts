/** The recording gateway compared with a bare node:http + undici proxy that records nothing, and with Portkey's
 *  gateway: throughput with open rollouts and with rollouts being sealed, processor time per call, latency at a steady
 *  rate, time to the first streamed byte, and latency of feedback.
 *  Ratios of turns in one run, in well under two minutes. */
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { RollbookError } from "../src/base/index.ts";
import { requireBuild } from "./support/build.ts";
import { type Contender, DIST, openContenders } from "./support/gateway/contenders.ts";
import { feedbackLatency } from "./support/gateway/feedback-latency.ts";
import { headLatency } from "./support/gateway/head-latency.ts";
import { percentile } from "./support/gateway/load.ts";
import {
  rolloutCost,
  type SealingFigures,
  singleCalls,
  wholeRollouts,
} from "./support/gateway/rollout-cost.ts";
import { mainThreadUs, processUs } from "./support/gateway/thread-time.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { inTempFolder } from "./support/temp-folder.ts";

export const bench: Bench = {
  summary:
    "the recording gateway against a bare proxy and @portkey-ai/gateway: throughput, latency, first byte",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rounds: { type: "string", default: "4" },
        "slice-ms": { type: "string", default: "1200" },
        json: { type: "boolean", default: false },
        "no-portkey": { type: "boolean", default: false },
        /** Only `feedback` or only `heads`. */
        only: { type: "string" },
        /** The dist/ of another build; its gateways take turns with ours. */
        against: { type: "string" },
      },
    });
    const { only } = values;
    if (only !== undefined && only !== "feedback" && only !== "heads")
      throw new RollbookError("bad-only", { only }, `--only ${only} is neither feedback nor heads.`);
    const options = { rounds: Number(values.rounds), sliceMs: Number(values["slice-ms"]) };
    if (only === "heads") {
      requireBuild();
      return inTempFolder("rollbook-bench-heads-", async (folder) => {
        const { figures, ratios } = await headLatency(folder, {
          ...options,
          dist: DIST,
          against: values.against,
        });
        printTable(figures, args);
        printTable(ratios, args);
      });
    }
    const scratch = mkdtempSync(join(tmpdir(), "rollbook-bench-gateway-"));
    const { contenders, upstreamPid, close } = await openContenders(scratch, {
      portkey: !values["no-portkey"] && only === undefined,
      against: values.against,
    });
    try {
      const durable = contenders.find(({ name }) => name === "durable")!;
      printTable([await feedbackRow(durable, join(scratch, "fsync-of-feedback"))], args);
      if (only === "feedback") return;
      const figures = await measure(contenders, { ...options, upstreamPid });
      printTable(
        contenders.map(({ name }) => rowOf(name, figures)),
        args,
      );
      printTable(sealingTable(contenders, figures), args);
      const costs = await costTable(durable);
      printTable(costs, args);
      if (values.json) return;
      const [p50, p99] = await fsyncTimes(join(scratch, "fsync"));
      for (const line of [...verdictsOf(figures), ...remarksOf(figures)]) console.log(line);
      console.log(
        `this machine, now: 4 KB append + fdatasync p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
      );
    } finally {
      close();
      rmSync(scratch, { recursive: true, force: true });
    }
  },
};

/** fsync times: the least wait of a durable reply. On a shared disk they can exceed the bars. */
async function fsyncTimes(path: string): Promise<[number, number]> {
  const file = await open(path, "w");
  const times: number[] = [];
  for (let i = 0; i < 300; i++) {
    const startMs = performance.now();
    await file.write(Buffer.alloc(4096));
    await file.datasync();
    times.push(performance.now() - startMs);
  }
  await file.close();
  return [percentile(times, 0.5), percentile(times, 0.99)];
}

const CONNECTIONS = 32;
const PER_SECOND = 300;
const STREAMS_PER_SECOND = 100;
const CALLS_PER_ROLLOUT = 4;

interface Figures {
  /** Requests per second while all rollouts stay open. */
  readonly rate: number[];
  /** While calls come without a rollout, and while rollouts of four calls are opened and closed. */
  readonly singles: SealingFigures[];
  readonly wholes: SealingFigures[];
  /** Processor time per call: the serving thread, its whole process, the upstream, the load generator. */
  readonly threadUs: number[];
  readonly processUs: number[];
  readonly upstreamUs: number[];
  readonly loadUs: number[];
  /** Milliseconds at a steady rate, and to the first byte of a stream. */
  readonly latency: number[];
  readonly firstByte: number[];
  /** Processor time of the serving thread per call, at the steady rate. */
  readonly steadyUs: number[];
}

interface Settings {
  readonly rounds: number;
  readonly sliceMs: number;
  readonly upstreamPid: number;
}

type AllFigures = ReadonlyMap<string, Figures>;

/** Each contender has its turn in every round; the first round is a warm-up and does not count. */
async function measure(contenders: readonly Contender[], settings: Settings): Promise<AllFigures> {
  const figures = new Map(contenders.map(({ name }) => [name, noFigures()]));
  for (let round = 0; round <= settings.rounds; round++)
    for (const contender of contenders) {
      const into = round === 0 ? noFigures() : figures.get(contender.name)!;
      await measureRate(contender, settings, into);
      await measureLatency(contender, settings, into);
      if (!contender.records) continue;
      const { sliceMs: ms } = settings;
      into.singles.push(await singleCalls(contender, ms));
      into.wholes.push(await wholeRollouts(contender, { callsPerRollout: CALLS_PER_ROLLOUT, ms }));
    }
  return figures;
}

function noFigures(): Figures {
  return {
    ...{ rate: [], singles: [], wholes: [], threadUs: [], processUs: [], upstreamUs: [], loadUs: [] },
    ...{ latency: [], firstByte: [], steadyUs: [] },
  };
}

async function measureRate(
  contender: Contender,
  { sliceMs, upstreamPid }: Settings,
  into: Figures,
): Promise<void> {
  const now = () => {
    const { user, system } = process.cpuUsage();
    const { pid } = contender;
    return [mainThreadUs(pid), processUs(pid), processUs(upstreamPid), user + system] as const;
  };
  const before = now();
  const startMs = performance.now();
  const rate = await contender.with(CONNECTIONS, "whole", (load) => load.closedLoop(sliceMs));
  const replies = (rate * (performance.now() - startMs)) / 1000;
  const [thread, all, upstream, load] = now().map((us, i) => (us - before[i]!) / replies);
  into.rate.push(rate);
  into.threadUs.push(thread!);
  into.processUs.push(all!);
  into.upstreamUs.push(upstream!);
  into.loadUs.push(load!);
}

async function measureLatency(contender: Contender, { sliceMs }: Settings, into: Figures): Promise<void> {
  const isPeer = contender.name === "portkey";
  if (isPeer) return;
  const before = mainThreadUs(contender.pid);
  const steady = await contender.with(64, "whole", (load) => load.openLoop(PER_SECOND, 2 * sliceMs));
  into.steadyUs.push((mainThreadUs(contender.pid) - before) / steady.length);
  into.latency.push(...steady.map(({ totalMs }) => totalMs));
  const streamed = await contender.with(64, "stream", (load) => load.openLoop(STREAMS_PER_SECOND, sliceMs));
  into.firstByte.push(...streamed.map(({ firstMs }) => firstMs));
}

/** A shared disk sometimes stalls for tens of milliseconds. The same percentile of its own fsyncs shows how often. */
async function feedbackRow(durable: Contender, path: string): Promise<Record<string, string | number>> {
  const slices = await feedbackLatency(durable, { slices: 7, ms: 1000 });
  const all = slices.flat();
  const [, fsync] = await fsyncTimes(path);
  return {
    "POST /v1/feedback": `${all.length} answers at 200/s`,
    "p50 ms": percentile(all, 0.5),
    "p99 ms": percentile(all, 0.99),
    "p99 ms, median second": median(slices.map((each) => percentile(each, 0.99))),
    "4 KB append + fdatasync, p99 ms": fsync,
    "bar, p99 ms": 10,
  };
}

async function costTable(durable: Contender): Promise<Record<string, string | number>[]> {
  const rows: Record<string, string | number>[] = [];
  for (const callsPerRollout of [1, 4, 16, 64]) {
    const { callUs, sealUs } = await rolloutCost(durable, { callsPerRollout, calls: 2048 });
    rows.push({
      "calls per rollout": callsPerRollout,
      "µs a call": Math.round(callUs),
      "µs a call to open and close": Math.round(sealUs),
    });
  }
  return rows;
}

function rowOf(name: string, figures: AllFigures): Record<string, string | number> {
  const own = figures.get(name)!;
  const bare = figures.get("bare proxy")!;
  const at = (share: number) => (own.latency.length === 0 ? "-" : percentile(own.latency, share));
  return {
    contender: name,
    "req/s": Math.round(median(own.rate)),
    "× bare": median(own.rate) / median(bare.rate),
    "thread µs": Math.round(median(own.threadUs)),
    "process µs": Math.round(median(own.processUs)),
    "at 300/s, thread µs": own.steadyUs.length === 0 ? "-" : Math.round(median(own.steadyUs)),
    "p50 ms": at(0.5),
    "p99 ms": at(0.99),
    "p99.9 ms": at(0.999),
    "first byte p50 ms": own.firstByte.length === 0 ? "-" : percentile(own.firstByte, 0.5),
  };
}

/** Service of calls while rollouts are sealed in the background. */
function sealingTable(
  contenders: readonly Contender[],
  figures: AllFigures,
): Record<string, string | number>[] {
  const bare = median(figures.get("bare proxy")!.rate);
  const row = (load: string, all: readonly SealingFigures[]) => {
    const of = (name: keyof SealingFigures) => median(all.map((each) => each[name]));
    return {
      load,
      "calls/s": Math.round(of("rate")),
      "× bare": of("rate") / bare,
      "thread µs": Math.round(of("threadUs")),
      "sealed/s": Math.round(of("sealedRate")),
      "left to seal": Math.round(of("backlog")),
      "sealed after ms": Math.round(of("emptyMs")),
    };
  };
  return contenders
    .filter(({ records }) => records)
    .flatMap(({ name }) => [
      row(`${name}, calls without a rollout`, figures.get(name)!.singles),
      row(`${name}, rollouts of ${CALLS_PER_ROLLOUT} calls`, figures.get(name)!.wholes),
    ]);
}

function verdictsOf(figures: AllFigures): string[] {
  const of = (name: string) => figures.get(name);
  const [bare, durable, asynchronous] = [of("bare proxy")!, of("durable")!, of("async")!];
  const portkey = of("portkey");
  const addedP99 = (own: Figures) => percentile(own.latency, 0.99) - percentile(bare.latency, 0.99);
  const first = percentile(durable.firstByte, 0.5) - percentile(bare.firstByte, 0.5);
  const line = (what: string, value: number, good: boolean, bar: string) =>
    `${good ? "met   " : "NOT MET"} ${what}: ${value.toPrecision(3)} (bar ${bar})`;
  const ratio = median(durable.rate) / median(bare.rate);
  const lines = [
    line("durable throughput, × bare", ratio, ratio >= 0.8, "≥ 0.8"),
    line("durable added p99, ms", addedP99(durable), addedP99(durable) <= 3, "≤ 3"),
    line("async added p99, ms", addedP99(asynchronous), addedP99(asynchronous) <= 1.5, "≤ 1.5"),
    line("added first byte, ms", first, first <= 1, "≤ 1"),
  ];
  if (portkey === undefined)
    return [
      ...lines,
      "not compared with @portkey-ai/gateway: left out, or it could not be installed or started",
    ];
  const faster = median(durable.rate) / median(portkey.rate);
  return [...lines, line("durable throughput, × portkey", faster, faster >= 8, "≥ 8")];
}

/** Processor use by process: all of them share the machine with the measured gateway. */
function remarksOf(figures: AllFigures): string[] {
  const bare = figures.get("bare proxy")!;
  const durable = figures.get("durable")!;
  const busy = (own: Figures, us: readonly number[]) => Math.round((median(us) * median(own.rate)) / 10_000);
  const shares = (name: string, own: Figures) =>
    `${name}: serving thread ${busy(own, own.threadUs)} %, its other threads ${
      busy(own, own.processUs) - busy(own, own.threadUs)
    } %, upstream ${busy(own, own.upstreamUs)} %, load generator ${busy(own, own.loadUs)} % of one processor`;
  return [shares("bare proxy", bare), shares("durable", durable)];
}
