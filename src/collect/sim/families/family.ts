/** A family of tasks: a name, a language and a pure draw. A draw builds a whole task from randomness alone, or gives
 *  the reason why this draw makes none. */
import type { Rng } from "../../../base/index.ts";
import type { Grading, Solutions, VisibleTask } from "../tasks/index.ts";

export type Difficulty = 1 | 2 | 3 | 4 | 5;
export const DIFFICULTIES: readonly Difficulty[] = [1, 2, 3, 4, 5];

export type Language = "javascript" | "python";

/** The part of a family that `generateTasks` needs. Families outside this package can implement it. */
export interface TaskFamily {
  /** An id, which environments and reports use. */
  readonly name: string;
  readonly language: Language;
  /** Pure: the same randomness gives the same task. */
  draw(rng: Rng, difficulty: Difficulty): Draft | Unusable;
}

/** A family of this package, with the facts that the documentation states about it. */
export interface Family extends TaskFamily {
  readonly summary: string;
  /** Description of the factors that raise the difficulty. */
  readonly grows: string;
  /** Number of task structures, ignoring constants and wording, counted from the tables of the family. */
  readonly structures: number;
}

export interface Draft {
  readonly visible: VisibleTask;
  readonly grading: Grading;
  readonly solutions: Solutions;
}

/** A draw that makes no good task, for example because too few mistakes change an answer. */
export interface Unusable {
  readonly unusable: string;
}

export function isUnusable(draft: Draft | Unusable): draft is Unusable {
  return "unusable" in draft;
}

export function pick<T>(rng: Rng, items: readonly T[]): T {
  return items[rng.below(items.length)]!;
}

/** Distinct items, in random order. */
export function sample<T>(rng: Rng, items: readonly T[], count: number): T[] {
  return rng.shuffle([...items]).slice(0, count);
}

/** A whole number from `low` to `high`, both included. */
export function between(rng: Rng, low: number, high: number): number {
  return low + rng.below(high - low + 1);
}
