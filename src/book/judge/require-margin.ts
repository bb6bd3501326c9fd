/** Refuses a non-inferiority margin that every policy would meet.
 *  In: the rows that judge, the rule. Writes nothing. */
import { figure, RollbookError } from "../../base/index.ts";
import type { JudgedRow } from "../../judge/index.ts";
import type { Range } from "../../judge/ope/index.ts";

export function requireMargin(
  rows: readonly JudgedRow[],
  {
    epsilonQuality = 0,
    range,
    isChained,
  }: { epsilonQuality?: number | undefined; range?: Range | undefined; isChained: boolean },
): void {
  // A given range applies to the compared value: for a chain, to the return.
  const { low, high } = range ?? observed(rows, isChained ? longestChain(rows) : 1);
  if (epsilonQuality < high - low) return;
  throw new RollbookError(
    "margin-too-wide",
    { epsilonQuality, low, high },
    `the margin on quality (--epsilon-quality, in a loop gate.epsilonQuality) is ${epsilonQuality}, not less than the range of the ${isChained ? "return" : "reward"} (${figure(low)} … ${figure(high)}), so any policy would pass. Choose the loss that you accept, such as ${figure((high - low) / 20)} (5 % of the range).`,
  );
}

/** Rewards of one value do not show their range, so the range always includes 0 … 1. */
function observed(rows: readonly JudgedRow[], decisions: number): Range {
  let [low, high] = [0, 1];
  for (const { measures } of rows) {
    const value = measures.quality ?? measures.reward ?? 0;
    [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  return { low: low * decisions, high: high * decisions };
}

/** A return is a sum of rewards, at most one for each decision of a rollout. */
function longestChain(rows: readonly JudgedRow[]): number {
  const lengths = new Map<string, number>();
  for (const { id, chain = id } of rows) lengths.set(chain, (lengths.get(chain) ?? 0) + 1);
  return [...lengths.values()].reduce((longest, length) => Math.max(longest, length), 1);
}
