/** The range of one outcome: stated before the data, else estimated from the log. The outcome of a chain is its return.
 *  If several rows share an extreme value, it is the end of the range (a clip, a success). If only one row reaches it,
 *  the end is moved out by twice its distance to the fifth-farthest row, because such a thinning tail continues. Two
 *  values are a range, for any counts.
 *  An observed range is not a promise: bounds that need a promised range require a stated one. */
import { episodesOf, returnsOf } from "./chain.ts";
import { type LoggedDecisions, type OutcomeRange, SUM_ROUNDING } from "./logged-decisions.ts";

const NEAR_END = 5;
const BEYOND = 2;

/** The rewards; for chains, the returns of the episodes. */
export function loggedOutcomes(log: LoggedDecisions): Float64Array {
  return log.chain === undefined ? log.reward : returnsOf(log, episodesOf(log));
}

/** high − low of the stated range, else of the observed outcomes; 0 if these are all equal. */
export function outcomeWidth(log: LoggedDecisions, outcomes = loggedOutcomes(log)): number {
  const { low, high } = log.rewardRange ?? observedRange(outcomes);
  return high - low <= SUM_ROUNDING * Math.max(Math.abs(low), Math.abs(high)) ? 0 : high - low;
}

function observedRange(values: Float64Array): OutcomeRange {
  const lowest = farthest(values, (a, b) => a < b);
  const highest = farthest(values, (a, b) => a > b);
  const [low, high] = [lowest[0]!, highest[0]!];
  if (values.every((value) => value === low || value === high)) return { low, high };
  return { low: low - beyond(lowest), high: high + beyond(highest) };
}

/** The values at one end of the range, the outermost first. */
function farthest(values: Float64Array, before: (a: number, b: number) => boolean): number[] {
  const found: number[] = [];
  for (const value of values) {
    if (found.length === NEAR_END && !before(value, found[NEAR_END - 1]!)) continue;
    let at = found.length;
    while (at > 0 && before(value, found[at - 1]!)) at--;
    found.splice(at, 0, value);
    found.length = Math.min(found.length, NEAR_END);
  }
  return found;
}

function beyond(end: readonly number[]): number {
  return end[1] === end[0] ? 0 : BEYOND * Math.abs(end[0]! - end.at(-1)!);
}
