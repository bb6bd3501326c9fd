/** Defines the world in which a loop collects: the tasks it assigns to a window, the chooser, and the way rollouts are
 *  made. */
import { type Digest, digestJson, type Rng, RollbookError } from "../../base/index.ts";
import type { Identity } from "../../book/collect/index.ts";
import type { BookOnDisk } from "../../book/open/index.ts";
import type { KeptThread } from "../../collect/index.ts";
import type { Progress, RolloutResult } from "../../collect/rollout/index.ts";
import type { Router } from "../../policy/index.ts";

/** Rollouts of a window: rows of the world by index, each run `samples` times. */
export interface Assigned {
  readonly rows: readonly number[];
  readonly samples: number;
  /** Digest of the rows in order, and of the number of samples. */
  readonly digest: Digest;
}

export interface CollectOptions {
  readonly book: BookOnDisk;
  readonly identity: Identity;
  readonly router: Router;
  readonly assigned: Assigned;
  readonly experiment: string;
  readonly seed: bigint;
  readonly workers: number;
  /** Queue of this window: a file that only this process uses, or a queue on a server. */
  readonly queue: string;
  /** Journal of a gateway that only this run uses. */
  readonly gateway: string;
  /** Keeps the sealing thread of the gateway for the next window. */
  readonly keptThread?: KeptThread | undefined;
  /** Once aborted, no more rollouts begin, and running ones end normally. */
  readonly drain: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
  readonly log: (line: string) => void;
}

interface Collected {
  readonly results: readonly RolloutResult[];
  readonly progress: Progress;
}

export interface LoopWorld {
  readonly digest: Digest;
  /** Models that a policy chooses among. */
  readonly models: readonly string[];
  /** Family under which choices are logged. */
  readonly family: string;
  readonly rows: number;
  assign(rows: readonly number[], samples: number): Assigned;
  collect(options: CollectOptions): Promise<Collected>;
  /** Exact expected reward of a router, and of the best policy; undefined if unknown. */
  readonly exact: { value(router: Router): number; readonly best: number } | undefined;
}

/** Refuses a world with fewer tasks than a window needs. `begun` names, as options of a command, a run that has a
 *  record: its settings are fixed. */
export function requireTasks({ rows }: Pick<LoopWorld, "rows">, count: number, begun?: string): void {
  if (count <= rows) return;
  const remedy =
    begun !== undefined
      ? `Add tasks and continue with \`rollbook run resume ${begun}\`, or start a run under another name under run:.`
      : "Lower rollouts, raise samples, or add tasks, and start the run again: nothing of it is recorded yet.";
  throw new RollbookError(
    "too-few-tasks",
    { tasks: rows, needed: count },
    `a window needs ${count} tasks (rollouts / samples) and the world has ${rows}. ${remedy}`,
  );
}

/** Draws the rows of a window without replacement, only from the seed and the number of the window. */
export function drawRows(
  world: Pick<LoopWorld, "rows">,
  { count, rng, options }: { count: number; rng: Rng; options: string },
): number[] {
  requireTasks(world, count, options);
  return rng
    .shuffle(Array.from({ length: world.rows }, (_, i) => i))
    .slice(0, count)
    .sort((a, b) => a - b);
}

export function assignedOf(rows: readonly number[], samples: number, of: readonly Digest[]): Assigned {
  return {
    ...{ rows, samples },
    digest: digestJson("rollbook.loop-assignment.v1", { rows: rows.map((row) => of[row]!), samples }),
  };
}
