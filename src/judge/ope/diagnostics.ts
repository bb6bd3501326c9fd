/** Diagnostics of a log: how much of it informs about the target policy.
 *  In: checked decisions. Out: facts; `support.ts` compares them with limits. Counts units, not rows: a unit's weight
 *  is the mean of its rows' weights.
 *  For chains it is the mean of its episodes' weights, each the product over its rows. */

import { meanOverUnits, standardError, sum } from "./estimators/index.ts";
import {
  episodesOf,
  episodeWeights,
  type LoggedDecisions,
  loggedOutcomes,
  outcomeWidth,
  type Units,
  unitsOf,
  weightsOf,
} from "./log/index.ts";

export interface Diagnostics {
  readonly rows: number;
  /** Number of independent units: groups of episodes or rows, or single episodes or rows. */
  readonly units: number;
  /** Kish's effective sample size (ΣW)² / ΣW² over the weights W of units. At most the number of units. */
  readonly effectiveSize: number;
  /** The largest weight of a row; for chains, of an episode. */
  readonly largestWeight: number;
  /** The heaviest unit's share of the total weight. */
  readonly largestShare: number;
  readonly meanWeight: number;
  /** (mean(w) − 1) / se. Weights average 1 if propensities and support are right. */
  readonly meanWeightZ: number;
  readonly unsupported: Unsupported;
  /** Kish's size of the squared deviations w·(r − mean r) of units: the number of outcomes that carry the variance. For
   *  a rare outcome it is about the number of its occurrences. Absent for chains. */
  readonly effectiveEvents?: number;
  /** The reward of every row (for chains: the return of every episode), if all are equal and no range was stated. */
  readonly constantReward?: number;
}

/** Target probability on actions without evidence in the log. */
interface Unsupported {
  /** Source of this fact: full logged distributions, actions never chosen, or unknown. */
  readonly basis: "distribution" | "never-chosen" | "unknown";
  readonly actions: readonly number[];
  /** Number of rows where the target puts probability on them. */
  readonly rows: number;
  /** Mean target probability per row on unsupported actions. */
  readonly mass: number;
}

export function diagnose(log: LoggedDecisions): Diagnostics {
  const { weights, units } = log.chain === undefined ? rowWeights(log) : chainWeights(log);
  const mean = meanOverUnits("weight", weights, { units });
  const { top: perUnit } = mean.ratios[0]!;
  const total = sum(perUnit);
  const squares = sum(perUnit.map((w) => w * w));
  return {
    rows: log.reward.length,
    units: units.count,
    effectiveSize: squares === 0 ? 0 : (total * total) / squares,
    largestWeight: largestOf(weights),
    largestShare: total === 0 ? 1 : largestOf(perUnit) / total,
    meanWeight: mean.value,
    meanWeightZ: zScore(mean.value - 1, standardError(mean)),
    unsupported: unsupportedActions(log),
    ...(log.chain === undefined ? { effectiveEvents: effectiveEvents(log, weights, units) } : {}),
    ...(outcomeWidth(log) > 0 ? {} : { constantReward: loggedOutcomes(log)[0]! }),
  };
}

interface UnitWeights {
  readonly weights: Float64Array;
  /** The unit of each weight. */
  readonly units: Units;
}

const rowWeights = (log: LoggedDecisions): UnitWeights => ({ weights: weightsOf(log), units: unitsOf(log) });

/** One weight per episode. */
function chainWeights(log: LoggedDecisions): UnitWeights {
  const episodes = episodesOf(log);
  return { weights: episodeWeights(log, episodes), units: episodes.units };
}

function effectiveEvents({ reward }: LoggedDecisions, weights: Float64Array, units: Units): number {
  const centre = sum(reward) / reward.length;
  const ofUnit = new Float64Array(units.count);
  for (let i = 0; i < reward.length; i++)
    ofUnit[units.of[i]!] =
      ofUnit[units.of[i]!]! + (weights[i]! * (reward[i]! - centre)) / (units.rows?.[units.of[i]!] ?? 1);
  const squares = ofUnit.map((each) => each * each);
  const fourth = sum(squares.map((each) => each * each));
  return fourth === 0 ? 0 : sum(squares) ** 2 / fourth;
}

const largestOf = (weights: Float64Array) => weights.reduce((top, w) => Math.max(top, w), 0);

/** On its own log a policy has weights of exactly 1 up to rounding. Gap and error are then 0. */
function zScore(gap: number, error: number): number {
  return Math.abs(gap) < 1e-9 ? 0 : gap / error;
}

function unsupportedActions({ candidates, reward }: LoggedDecisions): Unsupported {
  if (candidates === undefined) return { basis: "unknown", actions: [], rows: 0, mass: 0 };
  const { count, chosen, target, behaviour } = candidates;
  const everChosen = new Uint8Array(count);
  for (const action of chosen) everChosen[action] = 1;
  const massOf = new Float64Array(count);
  let rows = 0;
  for (let i = 0; i < reward.length; i++) {
    let isMissed = false;
    for (let a = 0; a < count; a++) {
      const supported = behaviour === undefined ? everChosen[a] === 1 : behaviour[i * count + a]! > 0;
      if (supported) continue;
      massOf[a] = massOf[a]! + target[i * count + a]!;
      if (target[i * count + a]! > 0) isMissed = true;
    }
    if (isMissed) rows++;
  }
  const actions: number[] = [];
  for (let a = 0; a < count; a++) if (massOf[a]! > 0) actions.push(a);
  return {
    basis: behaviour === undefined ? "never-chosen" : "distribution",
    ...{ actions, rows },
    mass: sum(massOf) / reward.length,
  };
}
