/** Makes a task out of a function: visible examples, hidden cases, the runner and the mutants that fail a hidden case.
 *  In: the intended behaviour (evaluated here, in the generator), sources, inputs. Out: a draft.
 *  Expected answers come from `evaluate`, never from running the reference. The proof shows that the two agree. */
import { canonicalize, type Json } from "../../../base/index.ts";
import type { Mutant, SourceFiles } from "../tasks/index.ts";
import {
  type Args,
  byHeart,
  CHECK_FILE,
  checkFiles,
  type Example,
  runnerOf,
  SOLUTION_FILE,
} from "./code-files.ts";
import type { Draft, Language, Unusable } from "./family.ts";

export type { Args, Example } from "./code-files.ts";

type Evaluate = (args: Args) => Json;

export interface CodeCandidate {
  readonly flaw: string;
  readonly source: string;
  readonly evaluate: Evaluate;
}

interface CodeTask {
  readonly language: Language;
  readonly functionName: string;
  /** Gets the visible cases, so that the statement can quote one. */
  statement(examples: readonly Example[]): string;
  readonly evaluate: Evaluate;
  readonly reference: string;
  readonly start: { readonly source: string; readonly evaluate: Evaluate };
  readonly mistakes: readonly CodeCandidate[];
  /** Ordinary inputs. The first of them are the visible cases. */
  readonly plain: readonly Args[];
  /** Inputs that only the oracle uses. */
  readonly edges: readonly Args[];
  readonly visibleCases: number;
  /** Additional files that an agent may read, such as sample data. */
  readonly files?: SourceFiles;
  /** For a handed-in file that is not itself a module: its path, the Python module among `files` that runs it, and the
   *  source in its language that memorizes the visible examples. */
  readonly foreign?: {
    readonly path: string;
    readonly module: string;
    byHeart(examples: readonly Example[]): string;
  };
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
    source: task.foreign?.byHeart(visible) ?? byHeart(task, visible),
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

/** Lists every input once. The start must fail a visible example, so that an agent sees that there is work to do. */
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

/** Mutants that fail a hidden case, with distinct answers, ordered from nearly right to mostly wrong. */
function usefulMutants(task: CodeTask, hidden: readonly Example[]): Pick<CodeCandidate, "flaw" | "source">[] {
  const graded = task.mistakes
    .filter((mistake) => mistake.source !== task.reference && mistake.source !== task.start.source)
    .map((mistake) => {
      const answers = hidden.map(({ args }) => mistake.evaluate(args));
      const right = hidden.filter((each, i) => same(answers[i]!, each.want)).length;
      return { mistake, right, key: canonicalize(answers) };
    })
    .filter(({ right }) => right < hidden.length);
  const different = uniqueBy(graded, ({ key }) => key).sort((a, b) => b.right - a.right);
  // Keeps mutants across the whole range: near misses teach a learner the most, and far misses must be present too.
  const kept = different.length <= MOST_MUTANTS - 1 ? different : spread(different, MOST_MUTANTS - 1);
  return kept.map(({ mistake }) => mistake);
}

function spread<T>(items: readonly T[], count: number): T[] {
  return Array.from({ length: count }, (_, i) => items[Math.floor((i * (items.length - 1)) / (count - 1))]!);
}

function same(a: Json, b: Json): boolean {
  return canonicalize(a) === canonicalize(b);
}

function uniqueBy<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  const seen = new Map<string, T>();
  for (const item of items) if (!seen.has(keyOf(item))) seen.set(keyOf(item), item);
  return [...seen.values()];
}
