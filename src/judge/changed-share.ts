/** The share of decisions that a policy would change. In: its probabilities and those of the baseline, by row and
 *  candidate. Out: the share of decisions that differ. Pure. */
import type { EvaluationData } from "./evaluate/index.ts";

/** The mean total variation distance. For deterministic policies it is the share of rows with different choices.
 *  Without a baseline, the logged choices are the reference. */
export function changedShare(
  { rows, candidates }: Pick<EvaluationData, "rows" | "candidates">,
  target: Float64Array,
  against: Float64Array | undefined,
): number {
  const width = candidates.length;
  let changed = 0;
  for (const [i, row] of rows.entries()) {
    if (against === undefined) {
      changed += 1 - target[i * width + candidates.indexOf(row.candidates[row.chosen]!.id)]!;
      continue;
    }
    let gap = 0;
    for (let at = i * width; at < (i + 1) * width; at++) gap += Math.abs(target[at]! - against[at]!);
    changed += gap / 2;
  }
  return Math.min(1, changed / rows.length);
}
