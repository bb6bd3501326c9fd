/** One generated task, in three parts that never mix: what an agent is shown, what only the reward sees, and what only
 *  the generator and the simulated models hold. Plain data: a seed gives the same bytes. Runs nothing. */
import type { Digest, Json } from "../../../base/index.ts";
import type { Program } from "../../sandbox/index.ts";

/** Relative path to text. */
export type SourceFiles = Readonly<Record<string, string>>;

export interface SimTask {
  readonly id: string;
  /** Of the visible part and the oracle: two tasks with one digest ask and grade the same. */
  readonly digest: Digest;
  readonly visible: VisibleTask;
  readonly oracle: Oracle;
  readonly solutions: Solutions;
}

/** All that an agent, and a router, may see: the payload of the rollout, verbatim. Neither family nor difficulty. */
export interface VisibleTask {
  readonly statement: string;
  /** The broken or empty start, and the visible tests. */
  readonly files: SourceFiles;
  /** The files an agent hands in; edits of any other are refused. */
  readonly editable: readonly string[];
  /** Runs over files and edits; exit code 0 means that the visible tests pass. */
  readonly check: Program;
}

/** The label of the rollout: the reward sees it, the agent never does. */
export interface Oracle {
  readonly family: string;
  /** From 1, the easiest. */
  readonly difficulty: number;
  readonly grading: Grading;
}

/** How what was handed in becomes answers, and what is right. What is right never enters a sandbox: handed-in code is
 *  given inputs and its answers are data, compared outside. So nothing it prints, exits with, replaces or reads there
 *  can earn more than answering does. grade.ts is the one implementation. */
export type Grading =
  /** `files` (the runner and the hidden inputs) are laid over everything else. The program answers case by case, in any
   *  order, with lines `@<case> <JSON>` on its standard output; all other output is ignored. */
  | {
      readonly kind: "program";
      readonly files: SourceFiles;
      readonly program: Program;
      readonly expected: readonly Json[];
    }
  /** A handed-in file is a JSON array of answers. Nothing is run. */
  | { readonly kind: "answers"; readonly path: string; readonly expected: readonly Json[] }
  /** A handed-in file is a plan of moves, walked through the world. Nothing is run. */
  | { readonly kind: "plan"; readonly path: string; readonly world: GridWorld };

/** `#` wall, `.` free, `S` start, `G` goal, `1` … `9` waypoints to be visited in this order, `~` mud (costs more). */
export interface GridWorld {
  readonly rows: readonly string[];
  /** What a step onto mud costs; onto anything else it costs 1. */
  readonly mudCost: number;
  readonly budget: number;
}

export interface Solutions {
  /** Passes everything. */
  readonly reference: SourceFiles;
  /** Wrong in known ways: none passes the oracle, some pass the visible tests. */
  readonly mutants: readonly Mutant[];
}

export interface Mutant {
  readonly files: SourceFiles;
  readonly flaw: string;
}

/** What running every solution showed, twice with one verdict. Kept beside the task: simulated outcomes follow from it. */
export interface TaskProof {
  readonly task: Digest;
  readonly engine: string;
  readonly start: SolutionFacts;
  readonly reference: SolutionFacts;
  readonly mutants: readonly SolutionFacts[];
}

export interface SolutionFacts {
  readonly passesVisible: boolean;
  /** Share of the hidden checks passed, 0 … 1: the partial credit. */
  readonly hidden: number;
}
