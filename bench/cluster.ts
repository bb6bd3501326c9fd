/** The worker protocol with the queue on NATS and on SQLite, in turns in one run: the whole protocol, claims as the
 *  queue grows, several worker processes, and a bucket compared with the plain client. One node syncs every write to
 *  the disk, as SQLite does; three nodes hold three copies. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { serverPath } from "../scripts/servers.mjs";
import { systemClock } from "../src/base/clock.ts";
import { RollbookError } from "../src/base/errors.ts";
import { openNatsQueue, openSqliteQueue } from "../src/collect/queue/index.ts";
import { type NatsServers, startNats } from "../test/support/nats-server.ts";
import { measureBucketSpeed } from "./support/bucket-speed.ts";
import { measureTraffic } from "./support/bucket-traffic.ts";
import { timeWorkers } from "./support/cluster-workers.ts";
import { median, printTable } from "./support/interleave.ts";
import type { Bench } from "./support/programs.ts";
import { type OpenBenchQueue, timeClaims, timeProtocol } from "./support/queue-protocol.ts";

/** The best published figure of a comparable system. */
const PEER_PER_SECOND = 57;
const ROUNDS = 3;

interface Driver {
  readonly name: string;
  /** Bar, relative to SQLite's rollouts per second. */
  readonly bar: string;
  readonly open: OpenBenchQueue;
}

export const bench: Bench = {
  summary:
    "the worker protocol with the queue on NATS, one node and three, beside SQLite; claims; 1 to 8 workers; a bucket beside its client",
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        json: { type: "boolean", default: false },
        only: { type: "string", default: "protocol,claims,workers,bucket,speed" },
        rounds: { type: "string", default: "3" },
        megabytes: { type: "string", default: "100" },
        candidates: { type: "string", default: "1000000" },
        rollouts: { type: "string", default: "3000" },
        workers: { type: "string", default: "32" },
        largest: { type: "string", default: "100000" },
      },
    });
    if (serverPath("nats-server") === undefined)
      throw new RollbookError(
        "no-server",
        {},
        "nats-server is missing. Run: node scripts/setup-server.mjs nats-server",
      );
    const parts = values.only.split(",");
    if (parts.includes("speed")) {
      const [rounds, megabytes] = [Number(values.rounds), Number(values.megabytes)];
      printTable(
        await measureBucketSpeed({ rounds, megabytes, candidates: Number(values.candidates) }),
        args,
      );
    }
    if (parts.every((part) => part === "speed")) return;
    const [one, three] = await Promise.all([startNats({ syncAlways: true }), startNats({ nodes: 3 })]);
    try {
      const drivers = driversOf(one, three);
      if (parts.includes("protocol"))
        printTable(await compareProtocol(drivers, Number(values.rollouts), Number(values.workers)), args);
      if (parts.includes("claims"))
        for (const driver of drivers.slice(1))
          printTable(await growQueue(driver, Number(values.largest)), args);
      if (parts.includes("workers")) printTable(await growWorkers(three), args);
      if (parts.includes("bucket")) printTable(await askBucket(three), args);
    } finally {
      await Promise.all([one.stop(), three.stop()]);
    }
  },
};

function driversOf(one: NatsServers, three: NatsServers): Driver[] {
  let queues = 0;
  const onNats = (servers: NatsServers, replicas: number): OpenBenchQueue => {
    const place = () => `nats://${servers.hosts}/bench-${queues++}?replicas=${replicas}`;
    return () => openNatsQueue(place(), { clock: systemClock });
  };
  return [
    {
      name: "SQLite",
      bar: "",
      open: async (folder) => {
        mkdirSync(folder, { recursive: true });
        return openSqliteQueue(join(folder, "queue.db"), { clock: systemClock });
      },
    },
    { name: "NATS, 1 node, sync always", bar: "0.3", open: onNats(one, 1) },
    { name: "NATS, 3 replicas", bar: "0.1", open: onNats(three, 3) },
  ];
}

async function compareProtocol(drivers: readonly Driver[], rollouts: number, workers: number) {
  const rates = drivers.map(() => [] as number[]);
  for (let round = 0; round <= ROUNDS; round++)
    for (const [i, { open }] of drivers.entries()) {
      const seconds = await timeProtocol({ open, rollouts, workers, sealing: false });
      // The first round is a warm-up.
      if (round > 0) rates[i]!.push(rollouts / seconds);
    }
  const ratios = (i: number) => rates[i]!.map((rate, round) => rate / rates[0]![round]!);
  return drivers.map(({ name, bar }, i) => ({
    queue: name,
    "rollouts/s": median(rates[i]!),
    "/ SQLite": median(ratios(i)),
    bar,
    "× the best peer (57)": median(rates[i]!) / PEER_PER_SECOND,
  }));
}

async function growQueue({ name, open }: Driver, largest: number) {
  const sizes = [1_000, 10_000, 100_000].filter((size) => size <= largest);
  const times = await timeClaims(open, sizes);
  return times.map(({ size, ms, batchMs }) => ({
    queue: name,
    queued: size,
    "claim 1, ms": median(ms),
    "claim 4, ms": median(batchMs),
    "claim 1 / at 1 000": median(ms) / median(times[0]!.ms),
    "claim 4 / at 1 000": median(batchMs) / median(times[0]!.batchMs),
  }));
}

const TRAFFIC_TASKS = 50;

/** Rollouts of one small call each, recorded by a gateway, in a book on S3. */
async function askBucket(servers: NatsServers) {
  const { code, seconds, rollouts, requests, objects, bytes } = await measureTraffic(servers, TRAFFIC_TASKS);
  if (code !== 0)
    throw new RollbookError("bench-failed", { code }, `the launch on the bucket ended with ${code}.`);
  return [
    ...requests.map(([what, count]) => ({ "a rollout": `${what} requests`, count: count / rollouts })),
    { "a rollout": "bytes in the bucket", count: bytes / rollouts },
    { "a rollout": `objects left (of ${rollouts} rollouts)`, count: objects },
    { "a rollout": "seconds for all of them", count: seconds },
  ];
}

const AGENT_MS = 500;
const ROLLOUTS_PER_PROCESS = 300;

/** Separate processes with 32 rollouts at a time: claim, an agent that takes half a second, seal, sign, upload,
 *  receipt. All processes write to one book. */
async function growWorkers(servers: NatsServers) {
  const rows = [];
  for (const processes of [1, 2, 4, 8]) {
    const queue = `nats://${servers.hosts}/workers-${processes}?replicas=3`;
    const rollouts = processes * ROLLOUTS_PER_PROCESS;
    const rate = rollouts / (await timeWorkers({ queue, processes, rollouts, agentMs: AGENT_MS }));
    rows.push({ queue: "NATS, 3 replicas", "worker processes": processes, "rollouts/s": rate });
  }
  const first = rows[0]!["rollouts/s"];
  return rows.map((row) => ({ ...row, "/ one process": row["rollouts/s"] / first }));
}
