/** One generated task, in three parts that never mix: what an agent is shown, what only the reward sees, and what only
 *  the generator and the simulated models hold. Plain data: a seed gives the same bytes. Runs nothing. */
import type { Digest } from "../../base/digest.ts";
import type { Program } from "../sandbox/sandbox.ts";

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
  /** Laid over the agent's files, so that no edit can replace them. */
  readonly files: SourceFiles;
  /** Prints one line of JSON last, `{"passed": n, "total": m}`, with the nonce of its environment variable
   *  ORACLE_NONCE in it, so that a handed-in file cannot print the verdict itself. */
  readonly program: Program;
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
