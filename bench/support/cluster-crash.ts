/** Strikes a launch whose queue is on three NATS nodes, round after round, and counts. In every round two launchers of the
 *  same experiment (split brain) and two workers are killed with SIGKILL at random moments while the servers suffer one
 *  fault; one worker reaches them through a proxy. In: rounds, seed. Out: how many rounds broke no promise: a result that
 *  was told stays the result, and in the end every rollout has one accepted artifact in a book that verifies. */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Rng, rngFrom, systemClock } from "../../src/base/index.ts";
import { openNatsQueue } from "../../src/collect/queue/index.ts";
import { type CuttingProxy, startCuttingProxy } from "../../test/support/cutting-proxy.ts";
import { type NatsServers, startNats } from "../../test/support/nats-server.ts";
import { requireBuild } from "./build.ts";
import {
  checkBook,
  endOf,
  finish,
  hear,
  killSoon,
  type Scene,
  startLaunch,
  startWorker,
  writeWork,
} from "./launch-crash.ts";

const ROUNDS_PER_BOOK = 6;
/** With their samples 40 rollouts a round. */
const TASKS_PER_ROUND = 10;
/** The longest time of one rollout: enough that every round finds work. */
const ROLLOUT_MS = 600;
/** Past the claims, which live 2 s in these launches. */
const PAUSE_MS = 2_600;

const FAULTS = [
  "one node killed",
  "all nodes killed",
  "one node paused",
  "worker paused past its claim",
  "network cut",
] as const;

type Fault = (typeof FAULTS)[number];

interface Cluster {
  readonly servers: NatsServers;
  readonly proxy: CuttingProxy;
}

export async function crashCluster(options: {
  readonly rounds: number;
  readonly seed: bigint;
  readonly onFailure: (what: string) => void;
  readonly onFault?: (fault: Fault) => void;
}): Promise<{ passed: number; failed: number }> {
  requireBuild();
  const rng = rngFrom(options.seed);
  // Every fault comes up equally often, in random order.
  const faults: Fault[] = [];
  while (faults.length < options.rounds) faults.push(...rng.shuffle([...FAULTS]));
  const tally = { passed: 0, failed: 0 };
  for (let from = 0; from < options.rounds; from += ROUNDS_PER_BOOK) {
    const some = faults.slice(from, Math.min(from + ROUNDS_PER_BOOK, options.rounds));
    const broken = await crashOneCluster(some, rng, options.onFault);
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
  const servers = await startNats({ nodes: 3 });
  const proxy = await startCuttingProxy(servers.nodes[0]!.port);
  try {
    const rollouts = writeWork(folder, { tasks: faults.length * TASKS_PER_ROUND, ms: ROLLOUT_MS });
    const queue = `nats://${servers.hosts}/crash?replicas=3`;
    const scene: Scene = { folder, words: [], queue, rollouts, told: new Map() };
    // Workers join a queue that is there.
    await (await openNatsQueue(queue, { clock: systemClock })).close();
    const broken: string[] = [];
    for (const fault of faults) {
      onFault?.(fault);
      broken.push(...(await strike(scene, { servers, proxy }, { fault, rng })));
    }
    broken.push(...(await finish(scene)), ...(await checkBook(scene)), ...(await checkQueue(scene)));
    return broken.map((what) => `${what} (after ${faults.join(", ")})`);
  } finally {
    await proxy.close();
    await servers.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function strike(
  scene: Scene,
  cluster: Cluster,
  { fault, rng }: { fault: Fault; rng: Rng },
): Promise<string[]> {
  const behindProxy = { ...scene, queue: `nats://127.0.0.1:${cluster.proxy.port}/crash?replicas=3` };
  const launchers = [startLaunch(scene), startLaunch(scene)];
  const workers = [startWorker(scene), startWorker(behindProxy)];
  const suffering = suffer(cluster, workers[0]!, { fault, rng });
  // The paused worker lives on until its claims are lost.
  const mortal = [...launchers, ...workers.slice(fault === "worker paused past its claim" ? 1 : 0)];
  const ends = await Promise.all(mortal.map((child) => killSoon(child, rng)));
  await suffering;
  return ends.slice(0, launchers.length).flatMap(({ lines }) => hear(lines, scene.told));
}

async function suffer(
  { servers: { nodes }, proxy }: Cluster,
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
    default:
      return fault satisfies never;
  }
}

/** The queue agrees with the book: everything done, nothing else. */
async function checkQueue({ queue, rollouts }: Scene): Promise<string[]> {
  const opened = await openNatsQueue(queue, { clock: systemClock });
  const { waiting, claimed, done, dead } = await opened.counts();
  await opened.close();
  if (done === rollouts && waiting + claimed + dead === 0) return [];
  return [`the queue has ${waiting} waiting, ${claimed} claimed, ${done} done, ${dead} dead of ${rollouts}`];
}
