/** The range of an IPS term that the logging policy guarantees, for bounds that hold for any number of rows. */
import { RollbookError } from "../../src/base/index.ts";
import type { Range } from "../../src/judge/ope/index.ts";

/** The range of w·r from limits fixed before logging: rewards in `reward`, π_b ≥ `floor`, π_e ≤ `ceiling`. */
export function weightedRange({
  reward,
  floor,
  ceiling = 1,
}: {
  reward: Range;
  floor: number;
  ceiling?: number;
}): Range {
  if (!(floor > 0 && floor <= 1)) {
    throw new RollbookError(
      "bad-floor",
      { floor },
      `propensity floor ${floor} is not in (0, 1]. State the smallest probability the logging policy could give.`,
    );
  }
  const largest = ceiling / floor;
  return { low: Math.min(0, reward.low * largest), high: Math.max(0, reward.high * largest) };
}
