/** Runs what the simulator runs on a book, until everything is sealed. In: flags, a route, what to open. Out: results.
 *  Opens and closes book, queue and sandbox; prints progress, nothing else. */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { parseId, RollbookError, rngFrom } from "../../base/index.ts";
import { openSqliteQueue } from "../../collect/queue/sqlite-queue.ts";
import type { Launch, Progress, RolloutResult } from "../../collect/rollout/index.ts";
import { openSandbox, type Sandbox } from "../../collect/sandbox/index.ts";
import { type Grader, proofGrader, sandboxGrader } from "../../collect/sim/graders.ts";
import type { RoutedRun, RunPlace } from "../../collect/sim/routed-run.ts";
import type { SimWorld } from "../../collect/sim/world.ts";
import { openBook } from "../../store/index.ts";
import { plural } from "../../view/format.ts";
import { renderProgress } from "../../view/launch-view.ts";
import type { Io } from "../io.ts";
import { identityFrom } from "../options/run-options.ts";
import type { EngineChoice, PlaceFlags } from "../options/sim-options.ts";
import { bookRoot } from "../with-book.ts";

const DRAW_EVERY_MS = 200;
const CLAIM_TTL_MS = 20_000;

export interface BookRun {
  readonly results: readonly RolloutResult[];
  readonly progress: Progress;
}

export async function runOnBook(
  io: Io,
  flags: PlaceFlags,
  options: {
    readonly route: RunPlace["route"];
    readonly limits?: RunPlace["limits"];
    readonly open: (place: RunPlace) => Promise<RoutedRun>;
    readonly onResult?: (result: RolloutResult) => void;
  },
): Promise<BookRun> {
  const identity = identityFrom(io);
  const root = bookRoot(io, flags);
  const book = await openBook(root, { clock: io.clock });
  const queue = openSqliteQueue(join(root, "queue.db"), { clock: io.clock, ttlMs: CLAIM_TTL_MS });
  const stop = new AbortController();
  const interrupt = () => stop.abort();
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    const { samples, seed, workers, attempts } = flags;
    const run = await options.open({
      ...{ book, queue, clock: io.clock, samples, seed, workers, signal: stop.signal },
      route: options.route,
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      exp: parseId(flags.exp, "--exp"),
      rng: rngFrom(BigInt(process.pid)),
      worker: parseId(`${hostname()}-${process.pid}`.replaceAll(/[^A-Za-z0-9_.-]/g, "-")),
      newId: () => `r-${randomUUID()}`,
      attempts: { provider: attempts, sandbox: attempts, infrastructure: attempts },
      ...identity,
      log: (line) => io.err(`${io.live ? "\r\u001b[K" : ""}${line}\n`),
    });
    try {
      return await follow(io, run.launched, options.onResult);
    } finally {
      await run.close();
    }
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
    await queue.close();
    await book.close();
  }
}

/** Who grades: a sandbox that is closed afterwards, or with `fast` the proofs of the tasks. */
export async function withGrader<T>(
  world: SimWorld,
  { engine, workers, fast }: { engine: EngineChoice; workers: number; fast?: boolean },
  work: (grader: Grader) => Promise<T>,
): Promise<T> {
  if (fast === true) return work(proofGrader(world.tasks));
  const sandbox = await openSandboxFor(world, { engine, workers });
  try {
    return await work(sandboxGrader(sandbox));
  } finally {
    await sandbox.close();
  }
}

/** Thrown after whatever there is has been printed. */
export function requireComplete({ progress: { total, done, dead } }: BookRun): void {
  if (total === done) return;
  throw new RollbookError(
    "launch-incomplete",
    { total, done, dead },
    `${total - done} of ${plural(total, "rollout")} not done${dead > 0 ? `, ${dead} set aside` : ""}. Give the same command again to run what is missing.`,
  );
}

async function follow(
  io: Io,
  launched: Launch,
  onResult?: (result: RolloutResult) => void,
): Promise<BookRun> {
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
async function openSandboxFor(
  { tasks }: SimWorld,
  { engine, workers }: { engine: EngineChoice; workers: number },
): Promise<Sandbox> {
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
