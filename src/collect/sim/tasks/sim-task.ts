/** One generated task, in three separate parts: the part that an agent sees, the part that only the reward sees, and
 *  the part that only the generator and the simulated models hold. Plain data: a seed gives the same bytes. Runs no
 *  code. */
import type { Digest, Json } from "../../../base/index.ts";
import type { Program } from "../../sandbox/index.ts";

/** Maps a relative path to its text. */
export type SourceFiles = Readonly<Record<string, string>>;

export interface SimTask {
  readonly id: string;
  /** Digest of the visible part and the oracle. Two tasks with the same digest have the same question and grading. */
  readonly digest: Digest;
  readonly visible: VisibleTask;
  readonly oracle: Oracle;
  readonly solutions: Solutions;
}

/** Everything that an agent or router may see: the payload of the rollout, verbatim. No family and no difficulty. */
export interface VisibleTask {
  readonly statement: string;
  /** The broken or empty start, and the visible tests. */
  readonly files: SourceFiles;
  /** The files that an agent hands in. Edits of other files are refused. */
  readonly editable: readonly string[];
  /** Runs on the files with the edits. Exit code 0 means that the visible tests pass. */
  readonly check: Program;
}

/** The label of the rollout. The reward sees it, the agent never does. */
export interface Oracle {
  readonly family: string;
  /** From 1, the easiest level. */
  readonly difficulty: number;
  readonly grading: Grading;
}

/** Turns the handed-in files into answers and compares them with the right ones. The right answers never enter a
 *  sandbox. Handed-in code gets inputs, and its answers are data, compared outside. Nothing that it prints, exits with,
 *  replaces or reads there can earn more than right answers do. grade.ts is the only implementation. */
export type Grading =
  /** `files` (the runner and the hidden inputs) overlay all other files. The program answers case by case, in any
   *  order, with lines `@<case> <JSON>` on its standard output. Other output is ignored. */
  | {
      readonly kind: "program";
      readonly files: SourceFiles;
      readonly program: Program;
      readonly expected: readonly Json[];
    }
  /** A handed-in file is a JSON array of answers. No code runs. */
  | { readonly kind: "answers"; readonly path: string; readonly expected: readonly Json[] }
  /** A handed-in file is a plan of moves, walked through the world. No code runs. */
  | { readonly kind: "plan"; readonly path: string; readonly world: GridWorld };

/** `#` wall, `.` free, `S` start, `G` goal, `1` … `9` waypoints to visit in this order, `~` mud (costs more). */
export interface GridWorld {
  readonly rows: readonly string[];
  /** Cost of a step onto mud. Any other step costs 1. */
  readonly mudCost: number;
  readonly budget: number;
}

export interface Solutions {
  /** Passes all visible and hidden tests. */
  readonly reference: SourceFiles;
  /** Wrong in known ways: no mutant passes the oracle, some pass the visible tests. */
  readonly mutants: readonly Mutant[];
}

export interface Mutant {
  readonly files: SourceFiles;
  readonly flaw: string;
}

/** Results of running every solution twice, with equal verdicts. Stored with the task, for simulated outcomes. */
export interface TaskProof {
  readonly task: Digest;
  readonly engine: string;
  readonly start: SolutionFacts;
  readonly reference: SolutionFacts;
  readonly mutants: readonly SolutionFacts[];
}

export interface SolutionFacts {
  readonly passesVisible: boolean;
  /** Share of the hidden checks passed, from 0 to 1: the partial credit. */
  readonly hidden: number;
}
