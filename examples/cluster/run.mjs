/** `npm run cluster`, or `node run.mjs [tasks]`: starts a cluster on loopback and runs a window of the training loop on
 *  it. While the window collects, it kills one process of each kind with SIGKILL. Then it prints the losses. Exit 0: no
 *  losses. Takes about a minute, at most two. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startUpstream } from "../sums/upstream.mjs";
import { QUESTIONS } from "./agent.mjs";
import { loop, startCluster } from "./cluster.mjs";
import { countLosses } from "./count-losses.mjs";
import { stopAll } from "./processes.mjs";

const [TASKS, SAMPLES, WORKERS] = [Number(process.argv[2] ?? 20), 4, 4];
const ROLLOUTS = TASKS * SAMPLES;
const CALLS = ROLLOUTS * QUESTIONS;
const WINDOW_MS = 100_000;

const say = (line) => process.stderr.write(`${line}\n`);
const folder = mkdtempSync(join(tmpdir(), "rollbook-cluster-"));
const given = AbortSignal.timeout(WINDOW_MS);
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => interrupted.abort());
const ended = AbortSignal.any([given, interrupted.signal]);
let beforeReply = async () => {};
const model = await startUpstream({ script: () => beforeReply() });
try {
  say(`three NATS nodes, an S3 server, two gateways, ${WORKERS} workers and the loop, in ${folder}`);
  const cluster = await startCluster(folder, { workers: WORKERS, model: model.url });
  let status;
  const running = loop(cluster.place, {
    ...{ tasks: writeTasks(), rollouts: ROLLOUTS, samples: SAMPLES },
    onLine(line) {
      status = JSON.parse(line);
    },
  });
  const { nats, gateways, s3, workers } = cluster;
  beforeReply = strikesOn([workers[1], nats[0], gateways[0], s3, running]);
  while (running.isRunning) await sleep(50, undefined, { signal: ended });
  report(status.windows[0], await countLosses(cluster.place));
} catch (error) {
  say(given.aborted ? `the window did not end within ${WINDOW_MS / 1000} s` : error.stack);
  process.exitCode = 1;
} finally {
  await stopAll();
  await model.close();
  if (process.exitCode === 1) say(`the logs are in ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
}

function writeTasks() {
  const path = join(folder, "tasks.jsonl");
  const rows = Array.from({ length: TASKS }, (_, i) => JSON.stringify({ a: i, b: 2 * i }));
  writeFileSync(path, `${rows.join("\n")}\n`);
  return path;
}

/** Kills one process of each kind, each after more calls of the window. Meanwhile the model holds its replies, so that
 *  a fast machine cannot end the window before the last kill. */
function strikesOn(victims) {
  let [asked, struck, striking] = [0, 0, Promise.resolve()];
  const strike = async (victim) => {
    while (victim.pid === undefined) await sleep(50, undefined, { signal: ended });
    say(`${asked} of at least ${CALLS} calls: kill -9 ${victim.name} (${victim.pid})`);
    await victim.strike();
  };
  return async () => {
    asked += 1;
    if (asked >= ((struck + 1) * CALLS) / (victims.length + 2) && struck < victims.length) {
      const victim = victims[struck++];
      striking = striking.then(() => strike(victim));
    }
    await striking;
  };
}

function report({ state, collectedBy, rewardMean, outcome }, losses) {
  const { members, accepted, missing, twice, sealings, unrecorded, artifacts, problems } = losses;
  const lines = [
    ["rollouts of the window", ROLLOUTS],
    ["in the window that the loop sealed", members],
    ["in the book with a receipt that accepts it", accepted],
    ["artifacts, attempts that were given up included", artifacts],
    ["in the window and not in the book", missing.length],
    ["accepted twice", twice.length],
    ["times that the window was sealed again", sealings - 1],
    ["replies that reached an agent and are not recorded", unrecorded.length],
    ["problems found by verify", problems.length],
  ];
  for (const [what, count] of lines) process.stdout.write(`${String(count).padStart(5)}  ${what}\n`);
  const mean = rewardMean.toFixed(2);
  process.stdout.write(
    `window 1: collected by ${collectedBy}, mean reward ${mean}, gate ${outcome}, ${state}\n`,
  );
  const lost = 2 * ROLLOUTS - members - accepted + missing.length + twice.length + sealings - 1;
  const isWhole = lost + unrecorded.length + problems.length === 0;
  process.stdout.write(isWhole ? "lost: nothing\n" : "lost: see above\n");
  if (!isWhole) process.exitCode = 1;
}
