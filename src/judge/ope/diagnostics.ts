/** What must be known before any number: how much of the log speaks about the target policy at all.
 *  In: checked decisions. Out: facts, no judgement; `support.ts` judges. For chains a weight is an episode's product. */
import { episodesOf, episodeWeights } from "./chain.ts";
import { sum } from "./estimate.ts";
import { type LoggedDecisions, unitsOf, weightsOf } from "./logged-decisions.ts";

export interface Diagnostics {
  readonly rows: number;
  /** Independent units: episodes, or rows that stand alone. */
  readonly units: number;
  /** Kish's effective sample size (Σw)² / Σw², in weights. */
  readonly effectiveSize: number;
  readonly largestWeight: number;
  /** The largest weight's share of all weight. */
  readonly largestShare: number;
  readonly meanWeight: number;
  /** (mean(w) − 1) / se: weights average 1 if propensities and support are right. */
  readonly meanWeightZ: number;
  readonly unsupported: Unsupported;
}

/** Target probability on actions the log cannot speak about. */
export interface Unsupported {
  /** How it was found: from full logged distributions, from actions never chosen, or not at all. */
  readonly basis: "distribution" | "never-chosen" | "unknown";
  readonly actions: readonly number[];
  /** Mean target probability per row on unsupported actions. */
  readonly mass: number;
}

export function diagnose(log: LoggedDecisions): Diagnostics {
  const weights = log.chain === undefined ? weightsOf(log) : episodeWeights(log, episodesOf(log));
  const total = sum(weights);
  const squares = sum(weights.map((w) => w * w));
  const mean = total / weights.length;
  const variance = sum(weights.map((w) => (w - mean) * (w - mean))) / Math.max(1, weights.length - 1);
  const error = Math.sqrt(variance / weights.length);
  const largest = weights.reduce((top, w) => Math.max(top, w), 0);
  return {
    rows: log.reward.length,
    units: unitsOf(log).count,
    effectiveSize: squares === 0 ? 0 : (total * total) / squares,
    largestWeight: largest,
    largestShare: total === 0 ? 1 : largest / total,
    meanWeight: mean,
    meanWeightZ: zScore(mean - 1, error),
    unsupported: unsupportedActions(log),
  };
}

/** A policy judged on its own log has weights of exactly 1 up to rounding: no gap, no error. */
function zScore(gap: number, error: number): number {
  return Math.abs(gap) < 1e-9 ? 0 : gap / error;
}

function unsupportedActions({ candidates, reward }: LoggedDecisions): Unsupported {
  if (candidates === undefined) return { basis: "unknown", actions: [], mass: 0 };
  const { count, chosen, target, behaviour } = candidates;
  const everChosen = new Uint8Array(count);
  for (const action of chosen) everChosen[action] = 1;
  const massOf = new Float64Array(count);
  for (let i = 0; i < reward.length; i++) {
    for (let a = 0; a < count; a++) {
      const supported = behaviour === undefined ? everChosen[a] === 1 : behaviour[i * count + a]! > 0;
      if (!supported) massOf[a] = massOf[a]! + target[i * count + a]!;
    }
  }
  const actions: number[] = [];
  for (let a = 0; a < count; a++) if (massOf[a]! > 0) actions.push(a);
  return {
    basis: behaviour === undefined ? "never-chosen" : "distribution",
    actions,
    mass: sum(massOf) / reward.length,
  };
}
