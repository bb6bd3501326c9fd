/** Generated tasks as a folder of four files.
 *  `tasks.jsonl`      one row per task in slime's form: prompt, label (the oracle) and metadata (the visible part).
 *  `solutions.jsonl`  the reference, the mutants and the proof of the same task, for simulated models only.
 *  `packages.jsonl`   the sealed environment package of every family.
 *  `tasks.meta.json`  seed, counts and the digests of the other files. Written last: a folder without it is incomplete.
 *  Reading checks every digest and names the place of a fault. Never overwrites. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  canonicalize,
  type Digest,
  decodeUtf8,
  digestBytes,
  fileReason,
  type Json,
  parseJson,
  RollbookError,
  reasonOf,
} from "../../../base/index.ts";
import type { EnvironmentPackage, Sealed } from "../../../contract/index.ts";
import { makeDirectory, syncDirectory, writeAtomically } from "../../../store/index.ts";
import type { SimTask } from "../tasks/index.ts";
import type { ProvedTask } from "../world/index.ts";
import { familyPackages } from "./family-packages.ts";
import { GENERATOR_VERSION, type GeneratedTask, type TaskRejection, taskDigest } from "./generate.ts";

export const TASKS_FILE = "tasks.jsonl";
export const SOLUTIONS_FILE = "solutions.jsonl";
export const PACKAGES_FILE = "packages.jsonl";
export const META_FILE = "tasks.meta.json";

export interface TasksMeta {
  readonly schema: "rollbook.sim-task-folder.v1";
  readonly generatorVersion: number;
  /** A decimal number. Null for tasks that were not drawn from a seed. */
  readonly seed: string | null;
  /** The engine that ran the proofs. Null without proofs. */
  readonly engine: string | null;
  readonly tasks: number;
  /** Number of tasks by family and difficulty. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Number of rejected draws, by family and reason. */
  readonly rejections: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Digests of the environment packages, by key. */
  readonly packages: Readonly<Record<string, Digest>>;
  readonly files: { readonly tasks: Digest; readonly solutions: Digest };
}

interface TaskFolder {
  readonly meta: TasksMeta;
  readonly tasks: readonly GeneratedTask[];
}

interface TaskOrigin {
  readonly seed?: bigint;
  readonly rejections?: readonly TaskRejection[];
}

export function writeTasks(
  folder: string,
  tasks: readonly GeneratedTask[],
  origin: TaskOrigin = {},
): TasksMeta {
  refuseExisting(folder);
  makeDirectory(folder);
  const rows = linesOf(
    tasks.map(({ task }) => ({ prompt: task.visible.statement, label: task.oracle, metadata: task.visible })),
  );
  const solutions = linesOf(
    tasks.map(({ task, proof }) => ({
      id: task.id,
      digest: task.digest,
      solutions: task.solutions,
      ...(proof ? { proof } : {}),
    })),
  );
  const meta = metaOf(tasks, origin, { tasks: digestOf(rows), solutions: digestOf(solutions) });
  const put = (name: string, bytes: Uint8Array) =>
    writeAtomically(join(folder, name), bytes, join(folder, `${name}.part`));
  put(TASKS_FILE, rows);
  put(SOLUTIONS_FILE, solutions);
  put(PACKAGES_FILE, packageLines(tasks));
  put(META_FILE, Buffer.from(`${canonicalize(meta)}\n`));
  syncDirectory(folder);
  return meta;
}

/** Reads the tasks of a folder. Every task must have a proof. */
export function readTasks(folder: string): ProvedTask[] {
  const { tasks } = readTaskFolder(folder);
  return tasks.map(({ task, proof }, i) => {
    if (proof !== undefined) return { task, proof };
    throw badTask(
      `${join(folder, SOLUTIONS_FILE)}:${i + 1}`,
      "holds no proof",
      "Generate the tasks without --no-prove.",
    );
  });
}

export function readTaskFolder(folder: string): TaskFolder {
  const meta = readMeta(folder);
  const rows = readLines(folder, TASKS_FILE, { lines: meta.tasks, digest: meta.files.tasks });
  const solutions = readLines(folder, SOLUTIONS_FILE, { lines: meta.tasks, digest: meta.files.solutions });
  const tasks = rows.values.map((row, i): GeneratedTask => {
    const where = `${join(folder, TASKS_FILE)}:${i + 1}`;
    const beside = solutions.values[i] as unknown as Pick<SimTask, "id" | "digest" | "solutions"> &
      Pick<GeneratedTask, "proof">;
    const { label, metadata } = row as unknown as { label: SimTask["oracle"]; metadata: SimTask["visible"] };
    if (label === undefined || metadata === undefined) throw badTask(where, "is not a task", AGAIN);
    if (taskDigest({ visible: metadata, oracle: label }) !== beside.digest)
      throw badTask(
        where,
        `is not the task that ${SOLUTIONS_FILE}:${i + 1} solves: one of the two was changed`,
        AGAIN,
      );
    if (beside.proof !== undefined && beside.proof.task !== beside.digest)
      throw badTask(`${join(folder, SOLUTIONS_FILE)}:${i + 1}`, "holds the proof of another task", AGAIN);
    const task: SimTask = {
      id: beside.id,
      digest: beside.digest,
      visible: metadata,
      oracle: label,
      solutions: beside.solutions,
    };
    return { task, ...(beside.proof ? { proof: beside.proof } : {}) };
  });
  // A line may be well-formed and still differ from the written one, for example a changed mutant.
  rows.refuseChange();
  solutions.refuseChange();
  refuseOtherPackages(folder, meta, tasks);
  return { meta, tasks };
}

export function refuseExisting(folder: string): void {
  for (const name of [META_FILE, TASKS_FILE, SOLUTIONS_FILE, PACKAGES_FILE]) {
    const path = join(folder, name);
    if (existsSync(path))
      throw new RollbookError("exists", { path }, `${path} already exists. Name another folder with --out.`);
  }
}

const AGAIN = "Restore the folder, or generate the tasks again from the same seed.";

function linesOf(values: readonly unknown[]): Uint8Array {
  return Buffer.from(values.map((value) => `${canonicalize(value)}\n`).join(""));
}

function digestOf(bytes: Uint8Array): Digest {
  return digestBytes("rollbook.sim-task-file.v1", bytes);
}

function metaOf(
  tasks: readonly GeneratedTask[],
  { seed, rejections = [] }: TaskOrigin,
  files: TasksMeta["files"],
): TasksMeta {
  const proofs = tasks.map(({ proof }) => proof);
  return {
    schema: "rollbook.sim-task-folder.v1",
    generatorVersion: GENERATOR_VERSION,
    seed: seed === undefined ? null : String(seed),
    engine: proofs.includes(undefined) ? null : (proofs[0]?.engine ?? null),
    tasks: tasks.length,
    counts: tally(tasks.map(({ task }) => [task.oracle.family, String(task.oracle.difficulty)])),
    rejections: tally(rejections.map(({ family, reason }) => [family, reason])),
    packages: digestsOf(packagesOf(tasks)),
    files,
  };
}

function packagesOf(tasks: readonly GeneratedTask[]): Sealed<EnvironmentPackage>[] {
  return familyPackages(tasks.map(({ task }) => task));
}

function packageLines(tasks: readonly GeneratedTask[]): Uint8Array {
  return Buffer.concat(packagesOf(tasks).flatMap((each) => [each.bytes, Buffer.from("\n")]));
}

/** Packages follow from the tasks, so they are rebuilt and compared. */
function refuseOtherPackages(folder: string, meta: TasksMeta, tasks: readonly GeneratedTask[]): void {
  const path = join(folder, PACKAGES_FILE);
  const whole = existsSync(path) && Buffer.compare(readFileSync(path), packageLines(tasks)) === 0;
  if (whole && canonicalize(digestsOf(packagesOf(tasks))) === canonicalize(meta.packages)) return;
  throw new RollbookError(
    "digest-mismatch",
    { path },
    `${path} does not hold the packages of these tasks. ${AGAIN}`,
  );
}

function digestsOf(packages: readonly Sealed<EnvironmentPackage>[]): Record<string, Digest> {
  return Object.fromEntries(packages.map((each) => [each.record.key, each.digest]));
}

function tally(pairs: readonly (readonly [string, string])[]): Record<string, Record<string, number>> {
  const counts: Record<string, Record<string, number>> = {};
  for (const [outer, inner] of pairs) {
    counts[outer] ??= {};
    counts[outer][inner] = (counts[outer][inner] ?? 0) + 1;
  }
  return counts;
}

function readMeta(folder: string): TasksMeta {
  const path = join(folder, META_FILE);
  if (statSync(folder, { throwIfNoEntry: false })?.isFile())
    throw new RollbookError(
      "no-tasks",
      { path: folder },
      `${folder} is a file. Name the folder that \`rollbook sim generate --out\` wrote, such as ${dirname(folder)}.`,
    );
  if (!existsSync(path)) {
    const begun = existsSync(join(folder, TASKS_FILE));
    throw new RollbookError(
      "no-tasks",
      { path },
      begun
        ? `${path} does not exist: ${folder} is not a finished folder of \`rollbook sim generate\`. Name one, or make one elsewhere with --out.`
        : `${path} does not exist. Make tasks with \`rollbook sim generate --out ${folder}\`.`,
    );
  }
  const meta = parseJson(decodeUtf8(readFileSync(path), path), path) as unknown as TasksMeta;
  if (
    meta?.schema !== "rollbook.sim-task-folder.v1" ||
    meta.files === undefined ||
    !Number.isSafeInteger(meta.tasks)
  )
    throw badTask(path, "does not describe a folder of tasks", AGAIN);
  return meta;
}

interface Lines {
  readonly values: readonly Json[];
  refuseChange(): void;
}

function readLines(folder: string, name: string, wanted: { lines: number; digest: Digest }): Lines {
  const path = join(folder, name);
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw new RollbookError("bad-task", { path }, `${path} cannot be read: ${fileReason(cause)}. ${AGAIN}`, {
      cause,
    });
  }
  const lines = decodeUtf8(bytes, path).split("\n");
  // Text after the last line break is an incomplete line.
  const rest = lines.pop()!;
  if (rest !== "" || lines.length !== wanted.lines) {
    const last = lines.length + (rest === "" ? 0 : 1);
    throw badTask(
      `${path}:${last}`,
      `is the last line${rest === "" ? "" : ", and cut off"}; ${META_FILE} says ${wanted.lines} tasks`,
      AGAIN,
    );
  }
  const values = lines.map((line, i) => readLine(line, `${path}:${i + 1}`));
  return {
    values,
    refuseChange() {
      const actual = digestOf(bytes);
      if (actual !== wanted.digest)
        throw new RollbookError(
          "digest-mismatch",
          { path, expected: wanted.digest, actual },
          `${path} is ${actual}, ${META_FILE} says ${wanted.digest}: it was edited. ${AGAIN}`,
        );
    },
  };
}

function readLine(line: string, where: string): Json {
  try {
    return parseJson(line, where);
  } catch (cause) {
    throw new RollbookError("bad-task", { where }, `${where} is not JSON: ${reasonOf(cause)} ${AGAIN}`, {
      cause,
    });
  }
}

function badTask(where: string, what: string, remedy: string): RollbookError {
  return new RollbookError("bad-task", { where }, `${where} ${what}. ${remedy}`);
}
