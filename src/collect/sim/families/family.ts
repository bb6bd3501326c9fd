/** What a family of tasks is: a name, a language and a pure draw. A draw builds a whole task from randomness alone, or
 *  says why this draw makes none. */
import type { Rng } from "../../../base/index.ts";
import type { Grading, Solutions, VisibleTask } from "../tasks/index.ts";

export type Difficulty = 1 | 2 | 3 | 4 | 5;
export const DIFFICULTIES: readonly Difficulty[] = [1, 2, 3, 4, 5];

export type Language = "javascript" | "python";

export interface Family {
  readonly name: string;
  readonly summary: string;
  /** What raises the difficulty, in words. */
  readonly grows: string;
  readonly language: Language;
  /** How many different structures a task can have, constants and wording aside; counted from the tables it is drawn
   *  from. */
  readonly structures: number;
  draw(rng: Rng, difficulty: Difficulty): Draft | Unusable;
}

export interface Draft {
  readonly visible: VisibleTask;
  readonly grading: Grading;
  readonly solutions: Solutions;
}

/** A draw that makes no good task, for instance because too few mistakes change an answer. */
export interface Unusable {
  readonly unusable: string;
}

export function isUnusable(draft: Draft | Unusable): draft is Unusable {
  return "unusable" in draft;
}

export function pick<T>(rng: Rng, items: readonly T[]): T {
  return items[rng.below(items.length)]!;
}

/** Different items, in random order. */
export function sample<T>(rng: Rng, items: readonly T[], count: number): T[] {
  return rng.shuffle([...items]).slice(0, count);
}

/** A whole number from `low` to `high`, both included. */
export function between(rng: Rng, low: number, high: number): number {
  return low + rng.below(high - low + 1);
}
