/** Runs the tests of a task, in a sandbox or from the proofs of its known solutions.
 *  In: a sandbox, or proved tasks. Out: visible test runs and hidden grades. The proof grader runs nothing and knows
 *  only the proved solutions. It refuses other files with an error and never guesses. */
import { type Digest, digestJson } from "../../../base/index.ts";
import { failedBy } from "../../rollout/index.ts";
import { type Sandbox, textOf } from "../../sandbox/index.ts";
import type { SolutionFacts, SourceFiles, VisibleTask } from "../tasks/index.ts";
import type { GradeFiles, ProvedTask, RunTests } from "../world/index.ts";
import { gradeHidden, runVisible } from "./grade.ts";

export interface Grader {
  /** Part of the environment's key: `sim` runs solutions, `sim-proofs` looks them up. */
  readonly ref: "sim" | "sim-proofs";
  readonly runTests: RunTests;
  readonly grade: GradeFiles;
}

export function sandboxGrader(sandbox: Sandbox): Grader {
  return {
    ref: "sim",
    async runTests(visible, files) {
      const result = await runVisible(visible, files, sandbox);
      const why = result.timedOut ? "\n(ran out of time)" : result.outOfMemory ? "\n(ran out of memory)" : "";
      return {
        passed: result.exitCode === 0,
        output: `${textOf(result.stdout)}${textOf(result.stderr)}${why}`,
      };
    },
    async grade(task, files) {
      const { passed, total } = await gradeHidden(task, files, sandbox);
      return total === 0 ? 0 : passed / total;
    },
  };
}

export function proofGrader(tasks: readonly ProvedTask[]): Grader {
  const known = new Map<Digest, SolutionFacts>();
  for (const { task, proof } of tasks) {
    known.set(keyOf(task.visible, {}), proof.start);
    known.set(keyOf(task.visible, task.solutions.reference), proof.reference);
    for (const [i, { files }] of task.solutions.mutants.entries())
      known.set(keyOf(task.visible, files), proof.mutants[i]!);
  }
  const factsOf = (visible: VisibleTask, files: SourceFiles): SolutionFacts => {
    const facts = known.get(keyOf(visible, files));
    if (facts !== undefined) return facts;
    throw failedBy(
      "task",
      "these files are none of the proved solutions, so nothing is known of them. Run in a sandbox, without --fast.",
    );
  };
  return {
    ref: "sim-proofs",
    runTests: async (visible, files) => ({ passed: factsOf(visible, files).passesVisible, output: "" }),
    grade: async ({ visible }, files) => factsOf(visible, files).hidden,
  };
}

/** A file edited back to its start has the same key as an unedited file. */
function keyOf({ statement, files: start, editable }: VisibleTask, files: SourceFiles): Digest {
  const now = editable.map((path) => files[path] ?? start[path] ?? null);
  return digestJson("rollbook.sim-handed-in.v1", { statement, start, now });
}
