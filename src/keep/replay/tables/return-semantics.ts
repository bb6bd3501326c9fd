/** The definition of a return: the reward in the dense view, and its discount. Pure. */

export type ReturnSemantics = "root-gain" | "reward-to-go";

export interface Returns {
  /** "root-gain": (before − after) / max(error of the root, ε), which telescopes to the gain of the whole path.
   *  "reward-to-go": the recorded reward of the step. */
  readonly semantics: ReturnSemantics;
  /** Discount of a step that does not end its episode. */
  readonly gamma: number;
  readonly epsilon: number;
}

export const DEFAULT_RETURNS: Returns = { semantics: "root-gain", gamma: 1, epsilon: 1e-9 };

/** Gain of one step; NaN if an error is unknown. */
export function rootGain(
  { before, after, root }: { before: number; after: number; root: number },
  epsilon: number,
): number {
  return (before - after) / Math.max(root, epsilon);
}
