/** Proves a task by running every solution it comes with, twice: the start fails, the reference passes everything,
 *  every mutant fails hidden cases. In: a task and a sandbox. Out: the proof, or why there is none.
 *  Runs all solutions of a task in one program: they are the generator's own, not an agent's. Verdicts are those of
 *  grade.ts, one program a solution, and a test holds the two against each other. */
import { canonicalize } from "../../base/canonical-json.ts";
import { type Files, type Program, type Sandbox, textOf } from "../sandbox/sandbox.ts";
import type { ProofOutcome } from "./generate.ts";
import { gradeFiles, gradeHidden, gradeOutput, runVisible, SIM_LIMITS, withEdits } from "./grade.ts";
import type { SimTask, SolutionFacts, SourceFiles, TaskProof } from "./sim-task.ts";

export type FactsOf = (task: SimTask, sandbox: Sandbox) => Promise<readonly SolutionFacts[]>;

/** `facts` runs the start, the reference and the mutants, in this order. */
export async function proveTask(
  task: SimTask,
  sandbox: Sandbox,
  facts: FactsOf = factsTogether,
): Promise<ProofOutcome> {
  const first = await facts(task, sandbox);
  const fault = faultIn(first);
  // A task that is no good need not be run again.
  if (fault !== undefined) return { proved: false, reason: fault };
  if (canonicalize(first) !== canonicalize(await facts(task, sandbox)))
    return { proved: false, reason: "two runs gave two verdicts" };
  const [start, reference, ...mutants] = first;
  const proof: TaskProof = {
    task: task.digest,
    engine: sandbox.engine,
    start: start!,
    reference: reference!,
    mutants,
  };
  return { proved: true, proof };
}

/** One program a run and a solution: what an agent's hand-in gets. */
export async function factsOneByOne(task: SimTask, sandbox: Sandbox): Promise<SolutionFacts[]> {
  const facts: SolutionFacts[] = [];
  for (const solution of solutionsOf(task)) {
    const passesVisible = (await runVisible(task.visible, solution, sandbox)).exitCode === 0;
    const { passed, total } = await gradeHidden(task, solution, sandbox);
    facts.push({ passesVisible, hidden: passed / total });
  }
  return facts;
}

/** Every solution in its own folder, one after the other in one program. */
export async function factsTogether(task: SimTask, sandbox: Sandbox): Promise<SolutionFacts[]> {
  const { grading } = task.oracle;
  const solutions = solutionsOf(task).map((solution) => withEdits(task.visible, solution));
  const folders = solutions.map(
    (files): SourceFiles => (grading.kind === "program" ? { ...files, ...grading.files } : files),
  );
  const entries = [task.visible.check, ...(grading.kind === "program" ? [grading.program] : [])].map(entryOf);
  const { program, files } =
    task.visible.check.kind === "python" ? pythonBatch(entries, folders) : javascriptBatch(entries, folders);
  const result = await sandbox.exec(program, files, { ...SIM_LIMITS, timeoutMs: BATCH_TIMEOUT_MS });
  const parts = textOf(result.stdout).split(/^=== (\d+) (\d+) (-?\d+)$/m);
  // Split with groups: output, folder, entry, exit code, output, … where the output of a run stands before its mark.
  const runs = new Map<string, { output: string; exitCode: number }>();
  for (let i = 0; i + 3 < parts.length; i += 4)
    runs.set(`${parts[i + 1]} ${parts[i + 2]}`, { output: parts[i]!, exitCode: Number(parts[i + 3]) });
  return solutions.map((files, i) => {
    const { passed, total } =
      grading.kind === "program"
        ? gradeOutput(runs.get(`${i} 1`)?.output ?? "", grading.expected)
        : gradeFiles(grading, files);
    return { passesVisible: runs.get(`${i} 0`)?.exitCode === 0, hidden: passed / total };
  });
}

const BATCH_TIMEOUT_MS = 60_000;

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
  // Families describe their programs by entry; an argv could not be moved into a folder.
  if (program.kind === "command") throw new TypeError(`a task of the simulator runs ${program.argv[0]}`);
  return program.entry;
}

function inFolders(folders: readonly SourceFiles[]): Files {
  return Object.fromEntries(
    folders.flatMap((files, i) => Object.entries(files).map(([path, text]) => [`s${i}/${path}`, text])),
  );
}

function javascriptBatch(entries: readonly string[], folders: readonly SourceFiles[]) {
  const main = `const write = process.stdout.write.bind(process.stdout);
const entries = ${JSON.stringify(entries)};
for (let folder = 0; folder < ${folders.length}; folder++) {
  for (let entry = 0; entry < entries.length; entry++) {
    process.exitCode = 0;
    process.cwd = () => "/task/s" + folder;
    try {
      await import("./s" + folder + "/" + entries[entry]);
    } catch (error) {
      process.exitCode = 1;
    }
    write("=== " + folder + " " + entry + " " + process.exitCode + "\\n");
  }
}
process.exitCode = 0;
`;
  const program: Program = { kind: "javascript", entry: "batch.mjs" };
  return { program, files: { ...inFolders(folders), "batch.mjs": main } };
}

function pythonBatch(entries: readonly string[], folders: readonly SourceFiles[]) {
  // A child for each run: modules of one solution are not there for the next. What the programs import is loaded once,
  // before the children are made: it is most of their time.
  const texts = Object.values(folders[0] ?? {});
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


for folder in range(${folders.length}):
    for index, entry in enumerate(${JSON.stringify(entries)}):
        code = run(os.path.join(os.getcwd(), f"s{folder}"), entry)
        print(f"=== {folder} {index} {code}", flush=True)
`;
  const program: Program = { kind: "python", entry: "batch.py" };
  return { program, files: { ...inFolders(folders), "batch.py": main } };
}
