/** Makes a task out of a function: visible examples, hidden cases, the runner and the mutants that deserve the name.
 *  In: what the function should do (evaluated here, in the generator), sources, inputs. Out: a draft.
 *  Expected answers come from `evaluate`, never from running the reference: that the two agree is what the proof shows. */
import { canonicalize, type Json } from "../../../base/canonical-json.ts";
import type { Grading, Mutant, SourceFiles } from "../sim-task.ts";
import type { Draft, Language, Unusable } from "./family.ts";
import { literal } from "./source-text.ts";

export type Args = readonly Json[];
type Evaluate = (args: Args) => Json;

export interface Candidate {
  readonly flaw: string;
  readonly source: string;
  readonly evaluate: Evaluate;
}

export interface CodeTask {
  readonly language: Language;
  readonly functionName: string;
  /** Gets the visible cases, so that it may quote one. */
  statement(examples: readonly Example[]): string;
  readonly evaluate: Evaluate;
  readonly reference: string;
  readonly start: { readonly source: string; readonly evaluate: Evaluate };
  readonly mistakes: readonly Candidate[];
  /** Ordinary inputs; the visible cases are the first of them. */
  readonly plain: readonly Args[];
  /** Inputs that only the oracle uses. */
  readonly edges: readonly Args[];
  readonly visibleCases: number;
  /** Further files an agent may read, for instance sample data. */
  readonly files?: SourceFiles;
  /** Where what is handed in is not itself a module: its path, the Python module among `files` that runs it, and how the
   *  visible examples are known by heart in its language. */
  readonly foreign?: {
    readonly path: string;
    readonly module: string;
    byHeart(examples: readonly Example[]): string;
  };
}

export interface Example {
  readonly args: Args;
  readonly want: Json;
}

const FEWEST_MUTANTS = 4;
const MOST_MUTANTS = 6;

export function codeTask(task: CodeTask): Draft | Unusable {
  const cases = examplesOf(task);
  if ("unusable" in cases) return cases;
  const { visible, hidden } = cases;
  const path = task.foreign?.path ?? SOLUTION_FILE[task.language];
  const mutants = usefulMutants(task, hidden);
  if (mutants.length + 1 < FEWEST_MUTANTS) return { unusable: "too few mistakes change an answer" };
  mutants.push({
    flaw: "knows the visible examples by heart",
    source: (task.foreign ?? { byHeart: (known: readonly Example[]) => byHeart(task, known) }).byHeart(
      visible,
    ),
  });
  return {
    visible: {
      statement: task.statement(visible),
      files: { ...task.files, [path]: task.start.source, ...checkFiles(task, visible) },
      editable: [path],
      check: { kind: task.language, entry: CHECK_FILE[task.language] },
    },
    grading: runnerOf(task, hidden),
    solutions: {
      reference: { [path]: task.reference },
      mutants: mutants.map(({ flaw, source }): Mutant => ({ flaw, files: { [path]: source } })),
    },
  };
}

const SOLUTION_FILE = { javascript: "solution.mjs", python: "solution.py" } as const;
const CHECK_FILE = { javascript: "check.mjs", python: "check.py" } as const;

/** Every input once. The start must fail a visible example: an agent has to see that there is work to do. */
function examplesOf(task: CodeTask): { visible: Example[]; hidden: Example[] } | Unusable {
  const want = (args: Args): Example => ({ args, want: task.evaluate(args) });
  const plain = uniqueBy(task.plain, canonicalize);
  const all = uniqueBy([...plain, ...task.edges], canonicalize).map(want);
  const fails = ({ args, want: right }: Example) => !same(task.start.evaluate(args), right);
  const shown = all.slice(0, plain.length);
  const telling = shown.find(fails);
  if (telling === undefined) return { unusable: "the start passes every ordinary case" };
  const visible = [telling, ...shown.filter((each) => each !== telling)].slice(0, task.visibleCases);
  const hidden = all.filter((each) => !visible.includes(each));
  if (new Set(hidden.map((each) => canonicalize(each.want))).size < 4)
    return { unusable: "the answers are too much alike" };
  if (hidden.filter(fails).length * 4 < hidden.length) return { unusable: "the start is nearly right" };
  return { visible, hidden };
}

/** Those that fail a hidden case, no two with the same answers, from nearly right to quite wrong. */
function usefulMutants(task: CodeTask, hidden: readonly Example[]): Pick<Candidate, "flaw" | "source">[] {
  const graded = task.mistakes
    .filter((mistake) => mistake.source !== task.reference && mistake.source !== task.start.source)
    .map((mistake) => {
      const answers = hidden.map(({ args }) => mistake.evaluate(args));
      const right = hidden.filter((each, i) => same(answers[i]!, each.want)).length;
      return { mistake, right, key: canonicalize(answers) };
    })
    .filter(({ right }) => right < hidden.length);
  const different = uniqueBy(graded, ({ key }) => key).sort((a, b) => b.right - a.right);
  // Spread over the range: the nearest misses are worth the most to a learner, and the far ones must be there too.
  const kept = different.length <= MOST_MUTANTS - 1 ? different : spread(different, MOST_MUTANTS - 1);
  return kept.map(({ mistake }) => mistake);
}

function spread<T>(items: readonly T[], count: number): T[] {
  return Array.from({ length: count }, (_, i) => items[Math.floor((i * (items.length - 1)) / (count - 1))]!);
}

function byHeart(task: CodeTask, visible: readonly Example[]): string {
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

function checkFiles(task: CodeTask, visible: readonly Example[]): SourceFiles {
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

/** The inputs go in, the answers come out; neither file knows what is right. */
function runnerOf(task: CodeTask, hidden: readonly Example[]): Grading {
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

function pythonRunner({ functionName, foreign }: CodeTask): string {
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

function same(a: Json, b: Json): boolean {
  return canonicalize(a) === canonicalize(b);
}

function uniqueBy<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  const seen = new Map<string, T>();
  for (const item of items) if (!seen.has(keyOf(item))) seen.set(keyOf(item), item);
  return [...seen.values()];
}
