/** The recording gateway against a bare node:http + undici proxy that records nothing, and against Portkey's gateway:
 *  throughput, added latency at a steady rate, time to the first streamed byte. Ratios of turns in one run. */
import { mkdtempSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Contender, openContenders } from "./support/gateway/contenders.ts";
import { percentile } from "./support/gateway/load.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";

export const bench: Bench = {
  summary:
    "the recording gateway against a bare proxy and @portkey-ai/gateway: throughput, latency, first byte",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        rounds: { type: "string", default: "5" },
        "slice-ms": { type: "string", default: "1500" },
        json: { type: "boolean", default: false },
        "no-portkey": { type: "boolean", default: false },
      },
    });
    const scratch = mkdtempSync(join(tmpdir(), "rollbook-bench-gateway-"));
    const { contenders, close } = await openContenders(scratch, { portkey: !values["no-portkey"] });
    try {
      const measured = await measure(contenders, Number(values.rounds), Number(values["slice-ms"]));
      printTable(measured.rows, args);
      if (values.json) return;
      for (const line of measured.verdicts) console.log(line);
      const [p50, p99] = await fsyncTimes(join(scratch, "fsync"));
      console.log(
        `this machine, now: 4 KB append + fdatasync p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`,
      );
    } finally {
      close();
      rmSync(scratch, { recursive: true, force: true });
    }
  },
};

/** What a durable reply waits for at least: on a disk that others use, more than the bars allow. */
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

interface Figures {
  throughput: number[];
  latency: number[];
  firstByte: number[];
}

/** Each contender has its turn in every round; the first round warms up and does not count. */
async function measure(contenders: readonly Contender[], rounds: number, sliceMs: number) {
  const figures = new Map(
    contenders.map(({ name }) => [name, { throughput: [], latency: [], firstByte: [] } as Figures]),
  );
  for (let round = 0; round <= rounds; round++) {
    for (const contender of contenders) {
      const own = figures.get(contender.name)!;
      const before = { ...own, latency: [...own.latency], firstByte: [...own.firstByte] };
      own.throughput.push(await contender.with(CONNECTIONS, "whole", (load) => load.closedLoop(sliceMs)));
      const steady = await contender.with(64, "whole", (load) => load.openLoop(PER_SECOND, sliceMs));
      own.latency.push(...steady.map(({ totalMs }) => totalMs));
      if (contender.streams) {
        const streamed = await contender.with(64, "stream", (load) =>
          load.openLoop(STREAMS_PER_SECOND, sliceMs),
        );
        own.firstByte.push(...streamed.map(({ firstMs }) => firstMs));
      }
      if (round === 0)
        figures.set(contender.name, { throughput: [], latency: before.latency, firstByte: before.firstByte });
    }
  }
  return { rows: contenders.map(({ name }) => rowOf(name, figures)), verdicts: verdictsOf(figures) };
}

function rowOf(name: string, figures: ReadonlyMap<string, Figures>): Record<string, string | number> {
  const own = figures.get(name)!;
  const bare = figures.get("bare proxy")!;
  return {
    contender: name,
    "req/s": Math.round(median(own.throughput)),
    "× bare": median(own.throughput) / median(bare.throughput),
    "p50 ms": percentile(own.latency, 0.5),
    "p99 ms": percentile(own.latency, 0.99),
    "added p99 ms": percentile(own.latency, 0.99) - percentile(bare.latency, 0.99),
    "first byte p50 ms": own.firstByte.length === 0 ? "-" : percentile(own.firstByte, 0.5),
    "added first byte ms":
      own.firstByte.length === 0 ? "-" : percentile(own.firstByte, 0.5) - percentile(bare.firstByte, 0.5),
  };
}

function verdictsOf(figures: ReadonlyMap<string, Figures>): string[] {
  const of = (name: string) => figures.get(name);
  const [bare, durable, asynchronous] = [of("bare proxy")!, of("durable")!, of("async")!];
  const portkey = of("portkey");
  const addedP99 = (own: Figures) => percentile(own.latency, 0.99) - percentile(bare.latency, 0.99);
  const first = percentile(durable.firstByte, 0.5) - percentile(bare.firstByte, 0.5);
  const line = (what: string, value: number, good: boolean, bar: string) =>
    `${good ? "met   " : "NOT MET"} ${what}: ${value.toPrecision(3)} (bar ${bar})`;
  const ratio = median(durable.throughput) / median(bare.throughput);
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
  const faster = median(durable.throughput) / median(portkey.throughput);
  return [...lines, line("durable throughput, × portkey", faster, faster >= 8, "≥ 8")];
}
