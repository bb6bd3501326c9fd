/** `npm run cluster`, or `node run.mjs [tasks]`: starts a cluster on loopback, runs a window of rollouts on it, kills one process of each kind with
 *  SIGKILL on the way, and says what was lost. Exit 0: nothing. Takes about a minute, at most two.
 *  The window is that of a launcher: the training loop opens its own gateway and cannot use those of a cluster yet. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startUpstream } from "../sums/upstream.mjs";
import { launcher, startCluster } from "./cluster.mjs";
import { countLosses } from "./count-losses.mjs";
import { stopAll } from "./processes.mjs";

const [TASKS, SAMPLES, WORKERS] = [Number(process.argv[2] ?? 20), 4, 4];
const WINDOW_MS = 100_000;

const say = (line) => process.stderr.write(`${line}\n`);
const folder = mkdtempSync(join(tmpdir(), "rollbook-cluster-"));
const given = AbortSignal.timeout(WINDOW_MS);
const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => interrupted.abort());
const ended = AbortSignal.any([given, interrupted.signal]);
const model = await startUpstream();
try {
  say(`three NATS nodes, an S3 server, two gateways and ${WORKERS} workers, in ${folder}`);
  const cluster = await startCluster(folder, { workers: WORKERS, model: model.url });
  const told = new Map();
  const changed = [];
  let summary;
  const launched = launcher(cluster.place, { tasks: writeTasks(), samples: SAMPLES, onLine: hear });
  await strikeAll();
  while (launched.isRunning) await sleep(50, undefined, { signal: ended });
  const losses = await countLosses(cluster.place, { told });
  report({ summary, changed, losses });

  /** A result that was told must stay the result, whichever launcher tells it. */
  function hear(line) {
    const result = JSON.parse(line);
    if (result.kind === "summary") summary = result;
    if (result.kind !== "rollout" || result.envelope === undefined) return;
    const before = told.get(result.rolloutId);
    if (before !== undefined && before !== result.envelope) changed.push(result.rolloutId);
    told.set(result.rolloutId, result.envelope);
  }

  /** One of each kind, each after more rollouts have ended. */
  async function strikeAll() {
    const { nats, gateways, s3, workers } = cluster;
    const victims = [workers[1], nats[0], gateways[0], s3, launched];
    for (const [i, victim] of victims.entries()) {
      const until = Math.floor(((i + 1) * TASKS * SAMPLES) / (victims.length + 2));
      while (told.size < until) await sleep(50, undefined, { signal: ended });
      say(`${told.size} of ${TASKS * SAMPLES} rollouts are done: kill -9 ${victim.name} (${victim.pid})`);
      await victim.strike();
    }
  }
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

function report({ summary, changed, losses }) {
  const { accepted, missing, twice, unrecorded, artifacts, problems } = losses;
  const lines = [
    ["rollouts of the window", TASKS * SAMPLES],
    ["told by the launcher as done", summary.done],
    ["in the book with a receipt that accepts it", accepted],
    ["artifacts, attempts that were given up included", artifacts],
    ["told and not in the book", missing.length],
    ["accepted twice", twice.length],
    ["told twice with different results", changed.length],
    ["replies that an agent heard and no record has", unrecorded.length],
    ["problems found by verify", problems.length],
  ];
  for (const [what, count] of lines) process.stdout.write(`${String(count).padStart(5)}  ${what}\n`);
  const lost = TASKS * SAMPLES - accepted + missing.length + twice.length + changed.length;
  const isWhole = lost + unrecorded.length + problems.length === 0;
  process.stdout.write(isWhole ? "lost: nothing\n" : "lost: see above\n");
  if (!isWhole) process.exitCode = 1;
}
