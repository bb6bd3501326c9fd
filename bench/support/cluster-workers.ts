/** Worker processes on one queue and one book: their time for all rollouts.
 *  In: a queue on NATS, the number of processes. Out: seconds from the start signal to the last receipt. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { openNatsQueue } from "../../src/collect/queue/index.ts";
import { workItems } from "../../src/collect/rollout/work/index.ts";
import { openBook } from "../../src/store/index.ts";
import { inTempFolder } from "./temp-folder.ts";
import { makeAssignment } from "./work.ts";

export interface WorkersOptions {
  readonly queue: string;
  readonly processes: number;
  readonly rollouts: number;
  /** The agent's time per rollout. */
  readonly agentMs: number;
}

const SCRIPT = fileURLToPath(new URL("./cluster-worker.ts", import.meta.url));

export async function timeWorkers({
  queue: place,
  processes,
  rollouts,
  agentMs,
}: WorkersOptions): Promise<number> {
  return inTempFolder("rollbook-cluster-bench-", async (folder) => {
    const path = join(folder, "book");
    const book = await openBook(path, { clock: systemClock });
    const assignment = makeAssignment(rollouts);
    book.put(assignment.kind, assignment.bytes);
    await book.close();
    const queue = await openNatsQueue(place, { clock: systemClock });
    await queue.enqueue(workItems(assignment));
    const workers = Array.from({ length: processes }, (_, i) =>
      startProcess([place, path, `w${i}`, String(rollouts), String(agentMs)]),
    );
    await Promise.all(workers.map(({ ready }) => ready));
    const start = performance.now();
    for (const { begin } of workers) begin();
    await Promise.all(workers.map(({ ended }) => ended));
    const seconds = (performance.now() - start) / 1000;
    const { done } = await queue.counts();
    await queue.close();
    if (done !== rollouts) throw new Error(`${done} done of ${rollouts}`);
    return seconds;
  });
}

function startProcess(words: readonly string[]) {
  const child = spawn(process.execPath, ["--import", "tsx", SCRIPT, ...words], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const exit = once(child, "exit");
  return {
    ready: once(lines, "line"),
    begin: () => child.stdin.end("go\n"),
    ended: exit.then(([code]) => {
      if (code !== 0) throw new Error(`a worker ended with ${code}`);
    }),
  };
}
