/** Runs a simulation on a book until everything is sealed.
 *  In: a book, a route, options for opening. Out: results. Opens and closes book, queue and sandbox. */
import { randomUUID } from "node:crypto";
import { given, parseId, plural, RollbookError } from "../../base/index.ts";
import type { WorkQueue } from "../../collect/queue/index.ts";
import type { Progress, RolloutResult } from "../../collect/rollout/index.ts";
import { openSandbox, type Sandbox } from "../../collect/sandbox/index.ts";
import {
  type Grader,
  proofGrader,
  type RoutedRun,
  type RunPlace,
  type SimWorld,
  sandboxGrader,
} from "../../collect/sim/index.ts";
import {
  type Followers,
  followLaunch,
  openPlace,
  openQueue,
  type PlaceRequest,
  type WorkRequest,
  workerName,
  workerOptions,
} from "../collect/index.ts";

export const ENGINES = ["auto", "bubblewrap", "docker", "quickjs"] as const;

export type EngineChoice = (typeof ENGINES)[number];

/** Size of a simulation, its book, and its names. */
export interface SimPlace
  extends Followers,
    Omit<PlaceRequest, "target" | "freshness">,
    Pick<WorkRequest, "queue" | "claimTtlMs" | "attempts" | "signal" | "drain" | "rng" | "worker">,
    Pick<RunPlace, "gateway" | "keptThread"> {
  /** Number of rollouts at the same time (default: 4). */
  readonly workers?: number | undefined;
  /** Rollouts per task (default: 1). */
  readonly samples?: number | undefined;
  readonly seed?: bigint | undefined;
  readonly exp?: string | undefined;
}

export interface SimRan {
  readonly results: readonly RolloutResult[];
  readonly progress: Progress;
}

/** Choice of the grader: a sandbox, or with `fast` the proofs of the tasks. */
export interface GraderChoice {
  readonly engine?: EngineChoice | undefined;
  readonly fast?: boolean | undefined;
  readonly workers?: number | undefined;
}

const WORKERS = 4;

export async function runOnBook(
  request: SimPlace,
  options: {
    readonly route: RunPlace["route"];
    readonly limits?: RunPlace["limits"];
    readonly open: (place: RunPlace) => Promise<RoutedRun>;
  },
): Promise<SimRan> {
  const { workers = WORKERS, samples = 1, seed = 0n, exp = "default" } = request;
  const { book, clock, signer, trusts, leave } = await openPlace(request, { create: true });
  let queue: WorkQueue | undefined;
  try {
    queue = await openQueue(request, { root: book.root, clock, create: true });
    const { rng, attempts, signal, drain, log } = workerOptions(request);
    const run = await options.open({
      ...{ book: book.store, queue, clock, signer, trusts, samples, seed, workers, rng },
      route: options.route,
      exp: parseId(exp, "--exp"),
      worker: workerName(request),
      newId: () => `r-${randomUUID()}`,
      ...given({ limits: options.limits, attempts, signal, drain, log }),
      ...given({ gateway: request.gateway, keptThread: request.keptThread }),
    });
    try {
      const results: RolloutResult[] = [];
      const onResult = (result: RolloutResult) => {
        results.push(result);
        request.onResult?.(result);
      };
      return { progress: await followLaunch(run.launched, { ...request, onResult }), results };
    } finally {
      await run.close();
    }
  } finally {
    await queue?.close();
    await leave();
  }
}

export async function withGrader<T>(
  world: SimWorld,
  { engine = "auto", workers = WORKERS, fast }: GraderChoice,
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

/** Finds a program that the engine cannot run before any rollout starts. */
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
    `the ${sandbox.engine} engine runs ${[...sandbox.runs].join(", ")} only, and ${plural(unable.length, "task")} of ${tasks.length} need more. Choose another engine, or generate tasks of other families.`,
  );
}
