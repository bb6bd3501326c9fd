/** Draws tasks from a seed. Families and difficulties alternate. The next draw replaces a draw without a good task.
 *  In: count, seed, families, difficulties, and a proof. Out: tasks in order, each with its proof.
 *  The same seed gives the same tasks for any number of concurrent proofs. Writes no files. */
import { digestJson, isObject, type Rng, RollbookError, rngFrom } from "../../../base/index.ts";
import {
  DIFFICULTIES,
  type Difficulty,
  type Draft,
  FAMILIES,
  isUnusable,
  type TaskFamily,
} from "../families/index.ts";
import type { SimTask, TaskProof } from "../tasks/index.ts";

/** Increment it whenever a seed would give other tasks. */
export const GENERATOR_VERSION = 1;

export interface GenerateOptions {
  readonly count: number;
  readonly seed: bigint | number;
  readonly families?: readonly TaskFamily[];
  readonly difficulties?: readonly Difficulty[];
  /** If absent, tasks are drawn but not run. */
  prove?(task: SimTask): Promise<ProofOutcome>;
  /** Number of concurrent proofs (default: 1). */
  readonly parallel?: number;
  onRejected?(rejection: TaskRejection): void;
}

export type ProofOutcome =
  | { readonly proved: true; readonly proof: TaskProof }
  | { readonly proved: false; readonly reason: string };

export interface TaskRejection {
  readonly family: string;
  readonly difficulty: Difficulty;
  readonly reason: string;
}

export interface GeneratedTask {
  readonly task: SimTask;
  /** Absent if the task was not proved. */
  readonly proof?: TaskProof;
}

/** Enough for any family. A family that needs more draws is broken, and generation must fail. */
const MOST_DRAWS = 200;

export async function* generateTasks(options: GenerateOptions): AsyncGenerator<GeneratedTask> {
  const drawing = checkOptions(options);
  const underWay: Promise<Settled>[] = [];
  const statements = new Set<string>();
  let next = 0;
  try {
    for (let index = 0; index < options.count; index++) {
      while (next < options.count && underWay.length < (options.parallel ?? 1)) {
        const settling = settle(drawing, next++, 0);
        // The error is thrown when its turn comes. Until then, this handler prevents an unhandled rejection.
        settling.catch(() => {});
        underWay.push(settling);
      }
      let settled = await underWay.shift()!;
      // Compares in output order, so that the result does not depend on which proof ends first.
      while (statements.has(settled.generated.task.visible.statement)) {
        options.onRejected?.({ ...placeOf(drawing, index), reason: "asks the same as another task" });
        settled = await settle(drawing, index, settled.draw + 1);
      }
      statements.add(settled.generated.task.visible.statement);
      yield settled.generated;
    }
  } finally {
    await Promise.allSettled(underWay);
  }
}

/** Identifies a task by its question and its grading. */
export function taskDigest({ visible, oracle }: Pick<SimTask, "visible" | "oracle">) {
  return digestJson("rollbook.sim-task.v1", { visible, oracle });
}

interface Drawing extends GenerateOptions {
  readonly families: readonly TaskFamily[];
  readonly difficulties: readonly Difficulty[];
  readonly rng: Rng;
}

interface Settled {
  readonly generated: GeneratedTask;
  readonly draw: number;
}

function checkOptions(options: GenerateOptions): Drawing {
  const { count, seed, families = FAMILIES, difficulties = DIFFICULTIES } = options;
  if (!Number.isSafeInteger(count) || count < 1)
    throw new RollbookError("bad-count", { count }, `count is ${count}; ask for at least 1 task.`);
  if (families.length === 0 || difficulties.length === 0)
    throw new RollbookError("no-families", {}, "name at least one family and one difficulty.");
  return { ...options, families, difficulties, rng: rngFrom(seed) };
}

function placeOf({ families, difficulties }: Drawing, index: number) {
  const family = families[index % families.length]!;
  const difficulty = difficulties[Math.floor(index / families.length) % difficulties.length]!;
  return { family: family.name, difficulty, draw: family.draw.bind(family) };
}

/** Returns the first draw, starting at `from`, that makes a task with a valid proof. */
async function settle(drawing: Drawing, index: number, from: number): Promise<Settled> {
  const { family, difficulty, draw: drawTask } = placeOf(drawing, index);
  const reject = (reason: string) => drawing.onRejected?.({ family, difficulty, reason });
  for (let draw = from; draw < from + MOST_DRAWS; draw++) {
    const draft = drawTask(drawing.rng.split(family).split(index).split(draw), difficulty);
    if (!isObject(draft) || !("unusable" in draft || ("visible" in draft && "grading" in draft)))
      throw new RollbookError(
        "bad-family",
        { family, difficulty },
        `draw of ${family} gave no task. It must return { visible, grading, solutions }, or { unusable } with a reason.`,
      );
    if (isUnusable(draft)) {
      reject(draft.unusable);
      continue;
    }
    const task = taskOf(draft, {
      id: `sim-${drawing.seed}-${String(index).padStart(5, "0")}`,
      family,
      difficulty,
    });
    if (drawing.prove === undefined) return { generated: { task }, draw };
    const outcome = await drawing.prove(task);
    if (outcome.proved) return { generated: { task, proof: outcome.proof }, draw };
    reject(outcome.reason);
  }
  throw new RollbookError(
    "sim-exhausted",
    { family, difficulty, index },
    `${MOST_DRAWS} draws of ${family} at difficulty ${difficulty} made no task that could be proved. Report this seed.`,
  );
}

function taskOf(
  { visible, grading, solutions }: Draft,
  { id, family, difficulty }: { id: string; family: string; difficulty: Difficulty },
): SimTask {
  const oracle = { family, difficulty, grading };
  return { id, digest: taskDigest({ visible, oracle }), visible, oracle, solutions };
}
