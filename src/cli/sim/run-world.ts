/** Runs a simulated world on a book until everything is sealed. In: flags, a world, an agent, a route. Out: results.
 *  Opens and closes book, queue, sandbox and gateway; prints progress, nothing else. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { parseId, RollbookError, rngFrom } from "../../base/index.ts";
import { openSqliteQueue } from "../../collect/queue/sqlite-queue.ts";
import type { Progress, RolloutResult } from "../../collect/rollout/index.ts";
import { openSandbox, type Sandbox } from "../../collect/sandbox/index.ts";
import { type Grader, proofGrader, sandboxGrader } from "../../collect/sim/graders.ts";
import { openSimRun, type SimRunOptions } from "../../collect/sim/run.ts";
import type { SimWorld } from "../../collect/sim/world.ts";
import { openBook } from "../../store/index.ts";
import { identityFrom } from "../commands/run-options.ts";
import type { Io } from "../io.ts";
import { bookRoot } from "../open-book.ts";
import { plural } from "../output.ts";
import { renderProgress } from "../views/launch-view.ts";
import type { SimFlags } from "./sim-options.ts";

const DRAW_EVERY_MS = 200;
const CLAIM_TTL_MS = 20_000;

export interface WorldRun {
  readonly results: readonly RolloutResult[];
  readonly progress: Progress;
}

export async function runWorld(
  io: Io,
  flags: SimFlags,
  options: Pick<SimRunOptions, "world" | "agent" | "route" | "limits"> & {
    /** Looks results up in the proofs instead of running them. */
    readonly fast?: boolean;
    readonly onResult?: (result: RolloutResult) => void;
  },
): Promise<WorldRun> {
  const { world, fast = false, onResult } = options;
  const identity = identityFrom(io);
  const sandbox = fast ? undefined : await openSandboxFor(world, flags);
  const root = bookRoot(io, flags);
  const book = await openBook(root, { clock: io.clock });
  const queue = openSqliteQueue(join(root, "queue.db"), { clock: io.clock, ttlMs: CLAIM_TTL_MS });
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    const grader: Grader = sandbox === undefined ? proofGrader(world.tasks) : sandboxGrader(sandbox);
    const { samples, seed, workers, attempts } = flags;
    const run = await openSimRun({
      ...options,
      ...{ grader, book, queue, clock: io.clock, samples, seed, workers, signal: stop.signal },
      exp: parseId(flags.exp, "--exp"),
      rng: rngFrom(BigInt(process.pid)),
      worker: parseId(`${hostname()}-${process.pid}`.replaceAll(/[^A-Za-z0-9_.-]/g, "-")),
      newId: () => `r-${randomUUID()}`,
      attempts: { provider: attempts, sandbox: attempts, infrastructure: attempts },
      ...identity,
      log: (line) => io.err(`${io.live ? "\r\u001b[K" : ""}${line}\n`),
    });
    try {
      return await follow(io, run.launched, onResult);
    } finally {
      await run.close();
    }
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
    await queue.close();
    await book.close();
    await sandbox?.close();
  }
}

/** Thrown after whatever there is has been printed. */
export function requireComplete({ progress: { total, done, dead } }: WorldRun): void {
  if (total === done) return;
  throw new RollbookError(
    "launch-incomplete",
    { total, done, dead },
    `${total - done} of ${plural(total, "rollout")} not done${dead > 0 ? `, ${dead} set aside` : ""}. Give the same command again to run what is missing.`,
  );
}

async function follow(
  io: Io,
  launched: Awaited<ReturnType<typeof openSimRun>>["launched"],
  onResult?: (result: RolloutResult) => void,
): Promise<WorldRun> {
  const draw = () => io.err(`\r\u001b[K${renderProgress(launched.progress())}`);
  const timer = io.live ? setInterval(draw, DRAW_EVERY_MS) : undefined;
  const results: RolloutResult[] = [];
  try {
    for await (const result of launched) {
      results.push(result);
      onResult?.(result);
    }
  } finally {
    clearInterval(timer);
    if (io.live) io.err("\r\u001b[K");
  }
  return { results, progress: launched.progress() };
}

/** A program that the engine cannot run is found out before anything is begun. */
async function openSandboxFor({ tasks }: SimWorld, { engine, workers }: SimFlags): Promise<Sandbox> {
  const sandbox = await openSandbox({ engine, workers });
  const unable = tasks.filter(({ task }) => {
    const { grading } = task.oracle;
    const kinds = [task.visible.check.kind, ...(grading.kind === "program" ? [grading.program.kind] : [])];
    return kinds.some((kind) => !sandbox.runs.has(kind));
  });
  if (unable.length === 0) return sandbox;
  await sandbox.close();
  throw new RollbookError(
    "sandbox-unsupported-program",
    { engine: sandbox.engine, tasks: unable.length },
    `the ${sandbox.engine} engine runs ${[...sandbox.runs].join(", ")} only, and ${plural(unable.length, "task")} of ${tasks.length} need more. Name another --engine, or generate tasks of other families.`,
  );
}
