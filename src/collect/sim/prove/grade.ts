/** Runs visible tests and the hidden oracle on handed-in files. The only grader of rewards, proofs and environments.
 *  In: the parts of a task, handed-in files, a sandbox. Out: verdicts. The behaviour of handed-in code is data; only a
 *  failing sandbox throws. Hidden output is never returned, because it would reveal the hidden inputs to an agent. */
import { canonicalize, type Json, parseJson, RollbookError } from "../../../base/index.ts";
import { type ExecResult, type Limits, type Sandbox, textOf } from "../../sandbox/index.ts";
import { type Grading, type Oracle, type SourceFiles, type VisibleTask, walkGrid } from "../tasks/index.ts";

interface ChecksPassed {
  readonly passed: number;
  readonly total: number;
}

/** Limits of one run of the visible tests or of the hidden oracle. */
export const SIM_LIMITS: Partial<Limits> = Object.freeze({ timeoutMs: 8_000, outputBytes: 1024 * 1024 });

/** Exit code 0 means that the visible tests pass. An agent may read the output. */
export function runVisible(
  visible: VisibleTask,
  handedIn: SourceFiles,
  sandbox: Sandbox,
): Promise<ExecResult> {
  return sandbox.exec(visible.check, withEdits(visible, handedIn), SIM_LIMITS);
}

export async function gradeHidden(
  { visible, oracle }: { visible: VisibleTask; oracle: Oracle },
  handedIn: SourceFiles,
  sandbox: Sandbox,
): Promise<ChecksPassed> {
  const files = withEdits(visible, handedIn);
  const { grading } = oracle;
  if (grading.kind !== "program") return gradeFiles(grading, files);
  const result = await sandbox.exec(grading.program, { ...files, ...grading.files }, SIM_LIMITS);
  return gradeOutput(textOf(result.stdout), grading.expected);
}

/** The files of the task, overlaid with the handed-in files. Only editable files may be handed in. */
export function withEdits(visible: VisibleTask, handedIn: SourceFiles): SourceFiles {
  for (const path of Object.keys(handedIn)) {
    if (!visible.editable.includes(path))
      throw new RollbookError(
        "sim-not-editable",
        { path, editable: visible.editable },
        `${path} cannot be handed in; this task takes ${visible.editable.join(", ")}.`,
      );
  }
  return { ...visible.files, ...handedIn };
}

/** Grades that need no sandbox, because no handed-in code runs. */
export function gradeFiles(grading: Exclude<Grading, { kind: "program" }>, files: SourceFiles): ChecksPassed {
  const text = files[grading.path] ?? "";
  switch (grading.kind) {
    case "answers":
      return gradeAnswers(text, grading.expected);
    case "plan": {
      const { passed, total } = walkGrid(grading.world, text);
      return { passed, total };
    }
    default:
      return grading satisfies never;
  }
}

/** The last of several lines for one case counts. A line that is not an answer is ignored. */
export function gradeOutput(stdout: string, expected: readonly Json[]): ChecksPassed {
  const right = new Set<number>();
  for (const [, index, text] of stdout.matchAll(/^@(\d{1,6}) (.*)$/gm)) {
    const at = Number(index);
    if (at >= expected.length) continue;
    if (isEqual(readJson(text!), expected[at]!)) right.add(at);
    else right.delete(at);
  }
  return { passed: right.size, total: expected.length };
}

function gradeAnswers(text: string, expected: readonly Json[]): ChecksPassed {
  const answers = readJson(text);
  if (!Array.isArray(answers) || answers.length !== expected.length)
    return { passed: 0, total: expected.length };
  const passed = expected.filter((value, i) => isEqual(answers[i] as Json, value)).length;
  return { passed, total: expected.length };
}

function isEqual(answer: Json | undefined, expected: Json): boolean {
  return answer !== undefined && canonicalize(answer) === canonicalize(expected);
}

/** Undefined for text that is not JSON: a wrong answer, not an error. */
function readJson(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
