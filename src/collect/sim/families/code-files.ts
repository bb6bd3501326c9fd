/** The programs around a handed-in function: the visible check, the runner of hidden cases, and the cheat that
 *  memorizes the visible examples. In: a task and its cases. Out: source text. */
import type { Json } from "../../../base/index.ts";
import type { Grading, SourceFiles } from "../tasks/index.ts";
import type { Language } from "./family.ts";
import { literal } from "./source-text.ts";

export type Args = readonly Json[];

export interface Example {
  readonly args: Args;
  readonly want: Json;
}

/** The function under test: in the handed-in file, or in the module that replaces it. */
interface Callee {
  readonly language: Language;
  readonly functionName: string;
  readonly foreign?: { readonly module: string };
}

export const SOLUTION_FILE = { javascript: "solution.mjs", python: "solution.py" } as const;
export const CHECK_FILE = { javascript: "check.mjs", python: "check.py" } as const;

export function byHeart(task: Callee, visible: readonly Example[]): string {
  const known = visible.map(({ args, want }) => [args, want]);
  const { language, functionName } = task;
  if (language === "python")
    return `KNOWN = ${literal("python", known)}


def ${functionName}(*args):
    for seen, answer in KNOWN:
        if list(args) == seen:
            return answer
    return KNOWN[0][1]
`;
  return `const known = ${JSON.stringify(known)};

export function ${functionName}(...args) {
  const seen = known.find(([given]) => JSON.stringify(given) === JSON.stringify(args));
  return (seen ?? known[0])[1];
}
`;
}

export function checkFiles(task: Callee, visible: readonly Example[]): SourceFiles {
  const { language, functionName, foreign } = task;
  const module = foreign?.module ?? "solution";
  const examples = visible.map(({ args, want }) => literal(language, [args, want]));
  if (language === "python")
    return {
      "check.py": `"""Runs the examples: exit code 0 means that all of them hold."""
import copy
import sys

import ${module}

EXAMPLES = [
${examples.map((each) => `    ${each},\n`).join("")}]

failed = 0
for args, want in EXAMPLES:
    try:
        got = ${module}.${functionName}(*copy.deepcopy(args))
    except Exception as error:
        got = repr(error)
    if got != want:
        failed += 1
        print(f"FAIL ${functionName}{tuple(args)}: got {got!r}, want {want!r}")
print(f"{len(EXAMPLES) - failed} of {len(EXAMPLES)} examples hold")
if failed:
    sys.exit(1)
`,
    };
  return {
    "check.mjs": `// Runs the examples: exit code 0 means that all of them hold.
import * as solution from "./solution.mjs";

const examples = [
${examples.map((each) => `  ${each},\n`).join("")}];

// The order of keys does not matter.
const sorted = (key, value) => value !== null && typeof value === "object" && !Array.isArray(value)
  ? Object.fromEntries(Object.keys(value).sort().map((name) => [name, value[name]]))
  : value;
const show = (value) => JSON.stringify(value, sorted);

let failed = 0;
for (const [args, want] of examples) {
  let got;
  try {
    got = show(solution.${functionName}(...JSON.parse(JSON.stringify(args))));
  } catch (error) {
    got = String(error);
  }
  if (got !== show(want)) {
    failed++;
    console.log("FAIL ${functionName}(" + JSON.stringify(args).slice(1, -1) + "): got " + got + ", want " + show(want));
  }
}
console.log(examples.length - failed + " of " + examples.length + " examples hold");
if (failed > 0) process.exitCode = 1;
`,
  };
}

/** Builds the runner of hidden cases. It gets inputs and prints answers; no file contains the right answers. */
export function runnerOf(task: Callee, hidden: readonly Example[]): Grading {
  const inputs = JSON.stringify(hidden.map(({ args }) => args));
  const expected = hidden.map(({ want }) => want);
  const { language, functionName } = task;
  if (language === "python")
    return {
      kind: "program",
      files: { "hidden_cases.json": inputs, "hidden_runner.py": pythonRunner(task) },
      program: { kind: "python", entry: "hidden_runner.py" },
      expected,
    };
  return {
    kind: "program",
    files: {
      "hidden-cases.mjs": `export default ${JSON.stringify(inputs)};\n`,
      "hidden-runner.mjs": javascriptRunner(functionName),
    },
    program: { kind: "javascript", entry: "hidden-runner.mjs" },
    expected,
  };
}

function javascriptRunner(functionName: string): string {
  return `import cases from "./hidden-cases.mjs";

const { parse, stringify } = JSON;
const write = process.stdout.write.bind(process.stdout);
// JSON has no word for these, and null is an answer of its own.
const exact = (key, value) => typeof value === "number" && !Number.isFinite(value) ? { $number: String(value) } : value;
const inputs = parse(cases);
const solution = await import("./solution.mjs");
for (let i = 0; i < inputs.length; i++) {
  let answer;
  try {
    answer = stringify(solution.${functionName}(...inputs[i]), exact) ?? '{"$undefined":true}';
  } catch {
    answer = '{"$threw":true}';
  }
  write("@" + i + " " + answer + "\\n");
}
`;
}

function pythonRunner({ functionName, foreign }: Callee): string {
  const module = foreign?.module ?? "solution";
  return `import json
import os
import sys

dumps = json.dumps
write = sys.stdout.write
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "hidden_cases.json")) as file:
    inputs = json.load(file)

import ${module}

for index, args in enumerate(inputs):
    try:
        answer = dumps(${module}.${functionName}(*args))
    except Exception:
        answer = '{"$threw":true}'
    write(f"@{index} {answer}\\n")
    sys.stdout.flush()
`;
}
