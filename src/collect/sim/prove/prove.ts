/** Proves tasks by running all of their solutions, twice: the start fails, the reference passes everything, every
 *  mutant fails hidden cases. In: tasks and a sandbox. Out: the proof, or the reason why there is none. Runs many
 *  solutions of several tasks in one program, because they come from the generator and not from an agent. Verdicts
 *  equal those of grade.ts with one program per solution. Tests compare the two. */
import { canonicalize, isRollbookError } from "../../../base/index.ts";
import { type Files, type Limits, type Program, type Sandbox, textOf } from "../../sandbox/index.ts";
import type { SimTask, SolutionFacts, SourceFiles } from "../tasks/index.ts";
import type { ProofOutcome } from "./generate.ts";
import { gradeFiles, gradeHidden, gradeOutput, runVisible, withEdits } from "./grade.ts";

export async function proveTask(task: SimTask, sandbox: Sandbox): Promise<ProofOutcome> {
  return (await proveTasks([task], sandbox))[0]!;
}

export async function proveTasks(tasks: readonly SimTask[], sandbox: Sandbox): Promise<ProofOutcome[]> {
  const once = () => persistently(() => factsOfMany(tasks, sandbox));
  const [first, second] = await Promise.all([once(), once()]);
  return tasks.map((task, i) => outcomeOf(task, sandbox.engine, [first[i]!, second[i]!]));
}

/** Makes a proof function that collects the requests of one turn of the event loop and runs tasks of one language
 *  together. Starting a program costs more than running a task. */
export function gatherProofs(sandbox: Sandbox, size = 6): (task: SimTask) => Promise<ProofOutcome> {
  type Waiting = { task: SimTask; resolve(outcome: ProofOutcome): void; reject(error: unknown): void };
  const waiting = new Map<string, Waiting[]>();
  const run = async (kind: string) => {
    const batch = waiting.get(kind)?.splice(0, size) ?? [];
    if (batch.length === 0) return;
    try {
      const outcomes = await proveTasks(
        batch.map(({ task }) => task),
        sandbox,
      );
      for (const [i, { resolve }] of batch.entries()) resolve(outcomes[i]!);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  return (task) =>
    new Promise((resolve, reject) => {
      const { kind } = task.visible.check;
      const queue = waiting.get(kind) ?? [];
      waiting.set(kind, queue);
      queue.push({ task, resolve, reject });
      // Every task schedules a run. A run that finds no waiting task ends at once.
      setImmediate(() => void run(kind));
    });
}

/** A failing engine is no evidence about the program. The program runs at most three times. */
async function persistently<T>(attempt: () => Promise<T>, tries = 3): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (tries === 1 || !isRollbookError(error) || !PASSING_FAULTS.has(error.code)) throw error;
    return persistently(attempt, tries - 1);
  }
}

const PASSING_FAULTS = new Set(["sandbox-engine-died", "sandbox-start-failed", "sandbox-stuck"]);

/** Runs one program per solution and check, as for a file handed in by an agent. */
export async function factsOneByOne(task: SimTask, sandbox: Sandbox): Promise<SolutionFacts[]> {
  const facts: SolutionFacts[] = [];
  for (const solution of solutionsOf(task)) {
    const passesVisible = (await runVisible(task.visible, solution, sandbox)).exitCode === 0;
    const { passed, total } = await gradeHidden(task, solution, sandbox);
    facts.push({ passesVisible, hidden: passed / total });
  }
  return facts;
}

/** Runs every solution in a separate folder, one after the other in one program. Order: start, reference, mutants. */
export async function factsOfMany(tasks: readonly SimTask[], sandbox: Sandbox): Promise<SolutionFacts[][]> {
  const runs = tasks.flatMap((task, t) => runsOf(task, `t${t}`));
  const { program, files } =
    tasks[0]!.visible.check.kind === "python" ? pythonBatch(runs) : javascriptBatch(runs);
  const result = await sandbox.exec(program, files, BATCH_LIMITS);
  const ends = readEnds(textOf(result.stdout));
  // A solution crashed the program, or the program took too long. Each task then runs alone, and finally each solution,
  // so that no solution is blamed for an earlier one.
  if (ends.length < runs.length) {
    if (tasks.length === 1) return [await factsOneByOne(tasks[0]!, sandbox)];
    return (await Promise.all(tasks.map((task) => factsOfMany([task], sandbox)))).map(([facts]) => facts!);
  }
  let next = 0;
  return tasks.map((task) =>
    solutionsOf(task).map((solution) => {
      const { grading } = task.oracle;
      const passesVisible = ends[next++]!.exitCode === 0;
      const { passed, total } =
        grading.kind === "program"
          ? gradeOutput(ends[next++]!.output, grading.expected)
          : gradeFiles(grading, withEdits(task.visible, solution));
      return { passesVisible, hidden: passed / total };
    }),
  );
}

/** One run of one entry, in a folder with its files. */
interface EntryRun {
  readonly folder: string;
  readonly entry: string;
  readonly files: SourceFiles;
}

function runsOf(task: SimTask, prefix: string): EntryRun[] {
  const { grading } = task.oracle;
  return solutionsOf(task).flatMap((solution, s) => {
    const hidden = grading.kind === "program" ? grading : undefined;
    const files = { ...withEdits(task.visible, solution), ...hidden?.files };
    const programs = [task.visible.check, ...(hidden ? [hidden.program] : [])];
    return programs.map((program) => ({ folder: `${prefix}s${s}`, entry: entryOf(program), files }));
  });
}

/** Splits the output by run and reads each exit code. The mark of a run follows its output. */
function readEnds(stdout: string): { output: string; exitCode: number }[] {
  const parts = stdout.split(/^=== (-?\d+)$/m);
  return Array.from({ length: parts.length >> 1 }, (_, i) => ({
    output: parts[2 * i]!,
    exitCode: Number(parts[2 * i + 1]),
  }));
}

const BATCH_LIMITS: Partial<Limits> = { timeoutMs: 60_000, outputBytes: 32 * 1024 * 1024 };

function outcomeOf(
  task: SimTask,
  engine: string,
  [first, second]: [SolutionFacts[], SolutionFacts[]],
): ProofOutcome {
  if (canonicalize(first) !== canonicalize(second))
    return { proved: false, reason: "two runs gave two verdicts" };
  const fault = faultIn(first);
  if (fault !== undefined) return { proved: false, reason: fault };
  const [start, reference, ...mutants] = first;
  return {
    proved: true,
    proof: { task: task.digest, engine, start: start!, reference: reference!, mutants },
  };
}

function solutionsOf({ solutions }: SimTask): SourceFiles[] {
  return [{}, solutions.reference, ...solutions.mutants.map((mutant) => mutant.files)];
}

function faultIn([start, reference, ...mutants]: readonly SolutionFacts[]): string | undefined {
  if (start!.passesVisible) return "the start passes the visible tests";
  if (start!.hidden >= 1) return "the start passes the oracle";
  if (!reference!.passesVisible) return "the reference fails the visible tests";
  if (reference!.hidden < 1) return "the reference fails the oracle";
  if (mutants.length < 4) return "there are fewer than four mutants";
  if (mutants.some((mutant) => mutant.hidden >= 1)) return "a mutant passes the oracle";
  if (!mutants.some((mutant) => mutant.passesVisible)) return "no mutant passes the visible tests";
  return undefined;
}

function entryOf(program: Program): string {
  // Families describe their programs by entry, because an argv could not be moved into a folder.
  if (program.kind === "command") throw new TypeError(`a task of the simulator runs ${program.argv[0]}`);
  return program.entry;
}

function inFolders(runs: readonly EntryRun[]): Record<string, string> {
  return Object.fromEntries(
    runs.flatMap(({ folder, files }) =>
      Object.entries(files).map(([path, text]) => [`${folder}/${path}`, text]),
    ),
  );
}

function javascriptBatch(runs: readonly EntryRun[]): { program: Program; files: Files } {
  const main = `const write = process.stdout.write.bind(process.stdout);
const runs = ${JSON.stringify(runs.map(({ folder, entry }) => [folder, entry]))};
for (const [folder, entry] of runs) {
  process.exitCode = 0;
  process.cwd = () => "/task/" + folder;
  try {
    await import("./" + folder + "/" + entry);
  } catch {
    process.exitCode = 1;
  }
  write("=== " + process.exitCode + "\\n");
}
process.exitCode = 0;
`;
  return {
    program: { kind: "javascript", entry: "batch.mjs" },
    files: { ...inFolders(runs), "batch.mjs": main },
  };
}

function pythonBatch(runs: readonly EntryRun[]): { program: Program; files: Files } {
  const files = inFolders(runs);
  // Each run gets a forked child, so that modules of one solution are not visible to the next. The parent loads
  // imported modules once before the forks, because imports take most of the time.
  const texts = Object.values(files);
  const used = ["copy", "json", "re", "sqlite3"].filter((name) =>
    texts.some((text) => text.includes(`import ${name}\n`)),
  );
  const main = `${used.map((name) => `import ${name}\n`).join("")}import os
import sys


def run(folder, entry):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 0
        try:
            os.chdir(folder)
            sys.path[0] = folder
            path = os.path.join(folder, entry)
            with open(path) as file:
                code_of = compile(file.read(), path, "exec")
            exec(code_of, {"__name__": "__main__", "__file__": path})
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            code = 1
        sys.stdout.flush()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


for folder, entry in ${JSON.stringify(runs.map(({ folder, entry }) => [folder, entry]))}:
    code = run(os.path.join("/task", folder), entry)
    print(f"=== {code}", flush=True)
`;
  return { program: { kind: "python", entry: "batch.py" }, files: { ...files, "batch.py": main } };
}
