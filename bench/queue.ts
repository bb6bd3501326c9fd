/** The worker protocol at full speed, durable, and the time of a claim as the queue grows. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../src/base/clock.ts";
import { openSqliteQueue } from "../src/collect/queue/sqlite-queue.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { type OpenBenchQueue, timeClaims, timeProtocol } from "./support/queue-protocol.ts";

const BAR_PER_SECOND = 1500;
/** The best published figure of a comparable system: see docs/reference/queue.md. */
const PEER_PER_SECOND = 57;

const openSqlite: OpenBenchQueue = async (folder) => {
  mkdirSync(folder, { recursive: true });
  return openSqliteQueue(join(folder, "queue.db"), { clock: systemClock });
};

export const bench: Bench = {
  summary:
    "claim, heartbeat, upload, receipt per second, durable; claim time at 1 000 to 100 000 queued items",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        json: { type: "boolean", default: false },
        only: { type: "string", default: "protocol,claims" },
        rollouts: { type: "string", default: "6000" },
        workers: { type: "string", default: "32" },
        largest: { type: "string", default: "100000" },
      },
    });
    const parts = values.only.split(",");
    if (parts.includes("protocol"))
      printTable(await compareProtocol(Number(values.rollouts), Number(values.workers)), args);
    if (parts.includes("claims")) printTable(await growQueue(Number(values.largest)), args);
  },
};

async function compareProtocol(rollouts: number, workers: number) {
  const rows = [];
  for (const sealing of [false, true]) {
    const seconds = await timeProtocol({ open: openSqlite, rollouts, workers, sealing });
    const rate = rollouts / seconds;
    rows.push({
      timed: sealing ? "protocol, and the workers' sealing" : "protocol",
      workers,
      rollouts,
      seconds,
      "rollouts/s": rate,
      "× the bar of 1 500": rate / BAR_PER_SECOND,
      "× the best peer (57)": rate / PEER_PER_SECOND,
    });
  }
  return rows;
}

async function growQueue(largest: number) {
  const sizes = [1_000, 10_000, 100_000].filter((size) => size <= largest);
  const times = await timeClaims(openSqlite, sizes);
  return times.map(({ size, ms, batchMs }) => ({
    queued: size,
    "claim 1, ms": median(ms),
    "claim 4, ms": median(batchMs),
    "claim 1 / at 1 000": median(ms) / median(times[0]!.ms),
    "claim 4 / at 1 000": median(batchMs) / median(times[0]!.batchMs),
  }));
}
