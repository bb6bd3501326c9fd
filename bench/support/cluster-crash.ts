/** Injects faults into a whole cluster, round after round, and counts broken promises.
 *  The cluster: three NATS nodes, a book in a bucket, and two gateways that share it. In every round two launchers of
 *  the same experiment (split brain) and two workers are killed with SIGKILL at random moments, while one more fault is
 *  active. One worker reaches NATS through a proxy; all reach the bucket through one. Every process has its own cache,
 *  as on its own machine. In: rounds, seed. Out: number of rounds that broke no promise. A reported result stays the
 *  result. In the end every rollout has one accepted artifact, and every reply that an agent received is recorded. The
 *  book verifies on a machine without any cached data. */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Rng, RollbookError, rngFrom, systemClock } from "../../src/base/index.ts";
import { openNatsQueue } from "../../src/collect/queue/index.ts";
import { checkOut } from "../../src/store/index.ts";
import { type BucketFault, type BucketProxy, startBucketProxy } from "../../test/support/bucket-proxy.ts";
import { type CuttingProxy, startCuttingProxy } from "../../test/support/cutting-proxy.ts";
import { type NatsServers, startNats } from "../../test/support/nats-server.ts";
import { type S3Server, startS3 } from "../../test/support/s3-server.ts";
import { requireBuild } from "./build.ts";
import { type EchoUpstream, openEcho } from "./gateway/echo-upstream.ts";
import {
  checkBook,
  endOf,
  finish,
  freePort,
  hear,
  killSoon,
  type Scene,
  spawnCli,
  startLaunch,
  startPeer,
  startWorker,
  writeWork,
} from "./launch-crash.ts";
import type { RoundRange } from "./programs.ts";

const ROUNDS_PER_BOOK = 6;
/** With their samples, 40 rollouts per round. */
const TASKS_PER_ROUND = 10;
/** The longest time of one rollout: long enough that every round finds work. */
const ROLLOUT_MS = 600;
/** Longer than the claims, which live 2 s in these launches. */
const PAUSE_MS = 2_600;
/** The longest life of launchers and workers. They start more slowly if the book is in a bucket. */
const LIFE_MS = 4_000;

const FAULTS = [
  "one node killed",
  "all nodes killed",
  "one node paused",
  "worker paused past its claim",
  "network cut",
  "one gateway killed",
  "both gateways killed",
  "bucket server killed",
  "bucket cut off",
  "bucket throttles",
  "bucket slow",
] as const;

type Fault = (typeof FAULTS)[number];

/** Behaviour of requests to the bucket during these faults. */
const BUCKET_FAULTS: Partial<Record<Fault, BucketFault>> = {
  "bucket cut off": { kind: "cut" },
  "bucket throttles": { kind: "throttle", share: 0.5 },
  "bucket slow": { kind: "slow", ms: 400 },
};

interface Gateways {
  /** Kills `count` gateways, chosen by `rng`, with SIGKILL and restarts each after `awayMs`. */
  strike(count: number, rng: Rng, awayMs: number): Promise<void>;
  stop(): Promise<void>;
}

interface Cluster {
  readonly servers: NatsServers;
  readonly proxy: CuttingProxy;
  readonly s3: S3Server;
  readonly bucket: BucketProxy;
  readonly gateways: Gateways;
}

export async function crashCluster(options: {
  readonly rounds: RoundRange;
  readonly seed: bigint;
  readonly onFailure: (what: string) => void;
  readonly onFault?: (fault: Fault) => void;
}): Promise<{ passed: number; failed: number }> {
  requireBuild();
  const { first, last } = options.rounds;
  const rng = rngFrom(options.seed);
  // Every fault occurs equally often, in random order.
  const faults: Fault[] = [];
  while (faults.length < last) faults.push(...rng.shuffle([...FAULTS]));
  const tally = { passed: 0, failed: 0 };
  for (let from = first - 1; from < last; from += ROUNDS_PER_BOOK) {
    const some = faults.slice(from, Math.min(from + ROUNDS_PER_BOOK, last));
    // A separate generator: a range has the same moments, also if earlier ranges are not run.
    const broken = await crashOneCluster(some, rng.split(from), options.onFault);
    for (const what of broken) options.onFailure(what);
    tally[broken.length === 0 ? "passed" : "failed"] += some.length;
  }
  return tally;
}

async function crashOneCluster(
  faults: readonly Fault[],
  rng: Rng,
  onFault: ((fault: Fault) => void) | undefined,
): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "rollbook-cluster-crash-"));
  const open: { stop(): Promise<unknown> }[] = [];
  const opened = <T extends { stop(): Promise<unknown> }>(each: T): T => {
    open.push(each);
    return each;
  };
  try {
    const servers = opened(await startNats({ nodes: 3 }));
    const s3 = opened(await startS3());
    if (s3.kind !== "versitygw")
      throw new RollbookError(
        "no-server",
        {},
        "versitygw is missing: moto loses its data when it is killed. Run: node scripts/setup-server.mjs versitygw",
      );
    const proxy = await startCuttingProxy(servers.nodes[0]!.port);
    opened({ stop: () => proxy.close() });
    const bucket = await startBucketProxy(s3.port);
    opened({ stop: () => bucket.close() });
    const echo = await openEcho();
    opened({ stop: async () => echo.close() });
    const scene = await makeScene({ folder, servers, s3, bucket, tasks: faults.length * TASKS_PER_ROUND });
    const gateways = opened(await startGateways(scene, echo));
    const broken: string[] = [];
    for (const fault of faults) {
      onFault?.(fault);
      broken.push(...(await strike(scene, { servers, proxy, s3, bucket, gateways }, { fault, rng })));
    }
    broken.push(...(await finish(scene)));
    await gateways.stop();
    broken.push(...(await checkBucket(scene)), ...(await checkQueue(scene)));
    return broken.map((what) => `${what} (after ${faults.join(", ")})`);
  } finally {
    for (const each of open.reverse()) await each.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const GATEWAYS = ["a", "b"] as const;

async function makeScene(at: {
  folder: string;
  servers: NatsServers;
  s3: S3Server;
  bucket: BucketProxy;
  tasks: number;
}): Promise<Scene> {
  const { folder, servers, s3, bucket, tasks } = at;
  const rollouts = writeWork(folder, { tasks, ms: ROLLOUT_MS });
  const queue = `nats://${servers.hosts}/crash?replicas=3`;
  const ports = [await freePort(), await freePort()];
  const urls = ports.map((port) => `http://127.0.0.1:${port}`);
  const env = { ...s3.env, AWS_ENDPOINT_URL_S3: `http://127.0.0.1:${bucket.port}` };
  const book = `s3://${s3.bucket}/crash`;
  const words = ["--gateway", urls.join(",")];
  // Workers need an existing queue and an existing book.
  await (await openNatsQueue(queue, { clock: systemClock })).close();
  await endOf(spawnCli(folder, ["keys", "new"]));
  const cache = { ROLLBOOK_CACHE: join(folder, "cache", "launcher") };
  const { code } = await endOf(spawnCli(folder, ["init", "--book", book], { ...env, ...cache }));
  if (code !== 0)
    throw new RollbookError("campaign-failed", { book }, `rollbook init --book ${book} ended with ${code}.`);
  return { folder, words, queue, rollouts, told: new Map(), book, env };
}

async function startGateways(scene: Scene, echo: EchoUpstream): Promise<Gateways> {
  const urls = scene.words[1]!.split(",");
  const peers = GATEWAYS.map((name, i) => `  ${name}: ${urls[i]}\n`).join("");
  const config = `upstreams: { up: { baseUrl: "${echo.url}" } }\ndefaultUpstream: up\npeers:\n${peers}`;
  writeFileSync(join(scene.folder, "gateway.yaml"), config);
  const running: ChildProcess[] = [];
  const start = async (i: number) => {
    running[i] = startPeer(scene, { name: GATEWAYS[i]!, port: Number(new URL(urls[i]!).port) });
    await answers(urls[i]!);
  };
  const end = async (i: number, signal: "SIGKILL" | "SIGTERM") => {
    const child = running[i];
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = endOf(child);
    child.kill(signal);
    await ended;
  };
  const all = GATEWAYS.map((_, i) => i);
  await Promise.all(all.map(start));
  return {
    async strike(count, rng, awayMs) {
      const struck = rng.shuffle([...all]).slice(0, count);
      await Promise.all(struck.map((i) => end(i, "SIGKILL")));
      await sleep(awayMs);
      await Promise.all(struck.map(start));
    },
    stop: () => Promise.all(all.map((i) => end(i, "SIGTERM"))).then(() => {}),
  };
}

const START_MS = 60_000;

async function answers(url: string): Promise<void> {
  const until = performance.now() + START_MS;
  while (!(await fetch(`${url}/healthz`).then(Boolean, () => false))) {
    if (performance.now() > until)
      throw new RollbookError("campaign-failed", { url }, `the gateway at ${url} does not start.`);
    await sleep(50);
  }
}

async function strike(
  scene: Scene,
  cluster: Cluster,
  { fault, rng }: { fault: Fault; rng: Rng },
): Promise<string[]> {
  const behindProxy = { ...scene, queue: `nats://127.0.0.1:${cluster.proxy.port}/crash?replicas=3` };
  const launchers = [startLaunch(scene), startLaunch(scene, "launcher-2")];
  const workers = [startWorker(scene, "worker-1"), startWorker(behindProxy, "worker-2")];
  const suffering = suffer(cluster, workers[0]!, { fault, rng });
  // The paused worker stays alive until its claims are lost.
  const mortal = [...launchers, ...workers.slice(fault === "worker paused past its claim" ? 1 : 0)];
  const ends = await Promise.all(mortal.map((child) => killSoon(child, rng, LIFE_MS)));
  await suffering;
  return ends.slice(0, launchers.length).flatMap(({ lines }) => hear(lines, scene.told));
}

async function suffer(
  { servers: { nodes }, proxy, s3, bucket, gateways }: Cluster,
  worker: ChildProcess,
  { fault, rng }: { fault: Fault; rng: Rng },
): Promise<void> {
  const [beforeMs, awayMs, node] = [
    600 + rng.below(1_200),
    rng.below(1_000),
    nodes[rng.below(nodes.length)]!,
  ];
  const isWorkers = fault === "worker paused past its claim";
  const ended = isWorkers ? endOf(worker) : undefined;
  await sleep(beforeMs);
  switch (fault) {
    case "one node killed":
      await node.kill();
      await sleep(awayMs);
      return node.start();
    case "all nodes killed":
      await Promise.all(nodes.map((each) => each.kill()));
      await sleep(awayMs);
      await Promise.all(nodes.map((each) => each.start()));
      return;
    case "one node paused":
      node.signal("SIGSTOP");
      await sleep(PAUSE_MS);
      return node.signal("SIGCONT");
    case "worker paused past its claim":
      worker.kill("SIGSTOP");
      await sleep(PAUSE_MS);
      worker.kill("SIGCONT");
      await sleep(awayMs);
      worker.kill("SIGKILL");
      await ended;
      return;
    case "network cut":
      return proxy.cutFor(PAUSE_MS);
    case "one gateway killed":
      return gateways.strike(1, rng, awayMs);
    case "both gateways killed":
      return gateways.strike(GATEWAYS.length, rng, awayMs);
    case "bucket server killed":
      await s3.kill();
      await sleep(awayMs);
      return s3.restart();
    case "bucket cut off":
    case "bucket throttles":
    case "bucket slow":
      bucket.fault = BUCKET_FAULTS[fault]!;
      await sleep(PAUSE_MS);
      bucket.fault = { kind: "none" };
      return;
    default:
      return fault satisfies never;
  }
}

/** The queue must agree with the book: all items done, no other state. */
async function checkQueue({ queue, rollouts }: Scene): Promise<string[]> {
  const opened = await openNatsQueue(queue, { clock: systemClock });
  const { waiting, claimed, done, dead } = await opened.counts();
  await opened.close();
  if (done === rollouts && waiting + claimed + dead === 0) return [];
  return [`the queue has ${waiting} waiting, ${claimed} claimed, ${done} done, ${dead} dead of ${rollouts}`];
}

/** The book as stored in the bucket, read on a machine without a cache. The client takes its endpoint from the
 *  environment, which is set during the check. */
async function checkBucket(scene: Scene): Promise<string[]> {
  const root = join(scene.folder, "reader");
  const before = { ...process.env };
  Object.assign(process.env, scene.env);
  try {
    await checkOut(scene.book!, root);
    return await checkBook(scene, root);
  } finally {
    for (const name of Object.keys(scene.env!)) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  }
}
