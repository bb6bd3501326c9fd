/** Generates a folder of simulated tasks from a seed, each proved in a sandbox.
 *  In: number of tasks, families and difficulties, the engine. Out: the content of tasks.meta.json. Never overwrites
 *  a folder. */
import { RollbookError } from "../../base/index.ts";
import { openSandbox, type Sandbox } from "../../collect/sandbox/index.ts";
import {
  type Difficulty,
  FAMILIES,
  familyNamed,
  type GeneratedTask,
  gatherProofs,
  generateTasks,
  refuseExisting,
  type TaskFamily,
  type TaskRejection,
  type TasksMeta,
  writeTasks,
} from "../../collect/sim/index.ts";
import { loadFamily } from "./load-family.ts";
import type { EngineChoice } from "./run-on-book.ts";

interface GenerateRequest {
  readonly out: string;
  readonly count: number;
  readonly seed: bigint;
  /** Names of families (default: the families of the files, else all that the engine runs). */
  readonly families?: readonly string[] | undefined;
  /** Paths of modules with the user's own families. */
  readonly familyFiles?: readonly string[] | undefined;
  readonly difficulties: readonly Difficulty[];
  readonly engine: EngineChoice;
  /** Number of programs that run at the same time. */
  readonly workers: number;
  /** False: tasks are drawn and no program is run. */
  readonly prove: boolean;
  onProgress?(drawn: number, replaced: number): void;
  /** Called with the families that were not named and that the engine does not run. */
  onLeftOut?(families: readonly string[], engine: string): void;
}

export async function generateTaskFolder(request: GenerateRequest): Promise<TasksMeta> {
  const { out, count, seed, difficulties, workers } = request;
  refuseExisting(out);
  const { families, sandbox } = await openProver(request);
  try {
    const rejections: TaskRejection[] = [];
    const tasks: GeneratedTask[] = [];
    const drawn = generateTasks({
      ...{ count, seed, families, difficulties },
      // Enough tasks in flight to fill every running program and the next one.
      parallel: 12 * workers,
      onRejected: (rejection) => rejections.push(rejection),
      ...(sandbox === undefined ? {} : { prove: gatherProofs(sandbox) }),
    });
    for await (const task of drawn) {
      tasks.push(task);
      request.onProgress?.(tasks.length, rejections.length);
    }
    return writeTasks(out, tasks, { seed, rejections });
  } finally {
    await sandbox?.close();
  }
}

/** Opens and closes the sandbox of a generation. Throws if it cannot be opened here, or does not run a named family. */
export async function requireProver(request: Pick<GenerateRequest, "families" | "engine">): Promise<void> {
  const { sandbox } = await openProver({ ...request, workers: 1, prove: true });
  await sandbox?.close();
}

type ProverRequest = Omit<GenerateRequest, "out" | "count" | "seed" | "difficulties" | "onProgress">;

async function openProver(
  request: ProverRequest,
): Promise<{ families: readonly TaskFamily[]; sandbox: Sandbox | undefined }> {
  // Named families are checked before the sandbox is opened.
  const wanted = await wantedFamilies(request);
  const { engine, workers, prove } = request;
  const sandbox = prove ? await openSandbox({ engine, workers }) : undefined;
  try {
    return { families: runnable(request, wanted, sandbox), sandbox };
  } catch (error) {
    await sandbox?.close();
    throw error;
  }
}

async function wantedFamilies({ families, familyFiles = [] }: ProverRequest): Promise<readonly TaskFamily[]> {
  const own: TaskFamily[] = [];
  for (const file of familyFiles) own.push(await loadFamily(file));
  if (families === undefined) return own.length > 0 ? own : FAMILIES;
  return families.map((name) => own.find((each) => each.name === name) ?? familyNamed(name));
}

/** A named family that the engine cannot run is an error. Other such families are left out and reported. */
function runnable(
  request: ProverRequest,
  wanted: readonly TaskFamily[],
  sandbox: Sandbox | undefined,
): readonly TaskFamily[] {
  const engine = sandbox?.engine ?? request.engine;
  const runs = (family: TaskFamily) =>
    sandbox === undefined
      ? engine !== "quickjs" || family.language === "javascript"
      : sandbox.runs.has(family.language);
  const left = wanted.filter((family) => !runs(family)).map((family) => family.name);
  if (left.length === 0) return wanted;
  if (request.families !== undefined || request.familyFiles !== undefined)
    throw new RollbookError(
      "family-not-runnable",
      { families: left, engine },
      `the ${engine} engine does not run ${left.join(", ")}. Choose another engine, or leave them out.`,
    );
  request.onLeftOut?.(left, engine);
  return wanted.filter(runs);
}
