/** The candidates that a policy chooses and a log rarely has: a misspelt name, or a model that was tried once or never.
 *  In: a log with a target. Out: these candidates, if the target often chooses them. Pure. */
import type { LoggedDecisions } from "./log/index.ts";

export interface RareChoices {
  readonly actions: readonly number[];
  /** Share of the target's probability on these candidates. */
  readonly share: number;
  /** Number of rows with such a choice. */
  readonly rows: number;
}

/** A candidate chosen in a smaller share of rows is rare. */
const RARE = 0.01;
/** Fewer rows are rare in a log of any size, unless they are a larger share of a small log. */
const FEW = { rows: 10, share: 0.05 };
/** A smaller share of the target's probability is not sufficient as the only explanation of a refusal. */
const OFTEN = 0.1;

export function rareChoices({ candidates, reward }: LoggedDecisions): RareChoices | undefined {
  if (candidates === undefined) return undefined;
  const { count, chosen, target } = candidates;
  const [times, mass] = [new Float64Array(count), new Float64Array(count)];
  for (const action of chosen) times[action]!++;
  for (const [i, p] of target.entries()) mass[i % count]! += p;
  const rows = reward.length;
  const limit = Math.max(RARE * rows, Math.min(FEW.rows, FEW.share * rows));
  const actions = Array.from(times.keys()).filter((a) => mass[a]! > 0 && times[a]! < limit);
  const total = (of: Float64Array) => actions.reduce((sum, a) => sum + of[a]!, 0);
  const [chosenIn, share] = [total(times), total(mass) / rows];
  return chosenIn < limit && share > OFTEN ? { actions, share, rows: chosenIn } : undefined;
}
