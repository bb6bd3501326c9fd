/** Judges one target policy on one log: diagnostics, then a refusal or all estimators side by side.
 *  In: decisions, an Rng, options. Out: a panel. Pure; does not read, print or decide. */
import type { Rng } from "../../base/index.ts";
import type { SplitUnit } from "../../contract/index.ts";
import { type Diagnostics, diagnose } from "./diagnostics.ts";
import {
  difference,
  type Estimate,
  IPS,
  naiveAgreement,
  standardError,
  unitValues,
} from "./estimators/index.ts";
import {
  bernsteinInterval,
  bootstrap,
  confidenceSequence,
  correctedInterval,
  hoeffdingInterval,
  type Interval,
  percentileInterval,
  type Range,
  type SensitivityBound,
  sensitivityBounds,
  widened,
} from "./intervals/index.ts";
import { checkDecisions, checkWithoutPropensities, type LoggedDecisions } from "./log/index.ts";
import {
  crossFitQ,
  crossFitRewards,
  type RewardPredictions,
  withEstimatedPropensities,
} from "./models/index.ts";
import { type EstimateBias, type PanelEntry, panelEntries } from "./panel-estimators.ts";
import { explainFaults, type SupportFault, type SupportLimits, supportFaults } from "./support.ts";

export interface PanelOptions {
  readonly rng: Rng;
  readonly level?: number;
  readonly replicates?: number;
  /** Range of one w·r, known before the data. Adds the finite-sample and any-time bounds for IPS. */
  readonly range?: Range;
  readonly limits?: SupportLimits;
  /** Share of the whole log that these decisions are. A refusal of a small log uses it to state the required size. */
  readonly judgeShare?: number | undefined;
  /** Kind of unit (default: a task). A refusal of a small log names it. */
  readonly unit?: SplitUnit | undefined;
  /** Predictions of a model that has not seen these rows. Absent: a ridge model is cross-fitted. */
  readonly predictions?: RewardPredictions;
  /** For logs without propensities: estimate them, and certify nothing. If false, such logs are an error. */
  readonly estimatePropensities?: boolean;
}

export type PanelResult = PanelRefusal | PanelEstimates;

export interface PanelRefusal {
  readonly kind: "refused";
  readonly diagnostics: Diagnostics;
  readonly faults: readonly SupportFault[];
  readonly reasons: readonly string[];
}

export interface PanelEstimates {
  readonly kind: "estimated";
  readonly certification: "certified" | "not certified";
  readonly diagnostics: Diagnostics;
  readonly rows: readonly PanelRow[];
  readonly disagreements: readonly Disagreement[];
  /** Mean reward of rows where the target agrees with the log: biased, shown for comparison only. */
  readonly naive: number;
  /** Present if propensities were estimated. */
  readonly sensitivity?: readonly SensitivityBound[];
}

export interface PanelRow extends PanelEntry {
  readonly standardError: number;
  readonly intervals: readonly Interval[];
  /** Error that the interval does not cover, if any. */
  readonly caveat?: string;
}

export interface Disagreement {
  readonly left: string;
  readonly right: string;
  readonly difference: Interval;
}

export function judgePolicy(log: LoggedDecisions, options: PanelOptions): PanelResult {
  const missing = options.estimatePropensities === true && log.behaviour.some((p) => Number.isNaN(p));
  const judged = missing ? estimated(log, options.rng) : log;
  checkDecisions(judged);
  const diagnostics = diagnose(judged);
  const faults = supportFaults(diagnostics, options.limits);
  if (faults.length > 0)
    return {
      kind: "refused",
      diagnostics,
      faults,
      reasons: explainFaults(faults, { ...options, rows: diagnostics.rows }),
    };
  const level = options.level ?? 0.95;
  const entries = panelEntries(judged, predictionsOf(judged, options));
  return {
    kind: "estimated",
    certification: missing ? "not certified" : "certified",
    diagnostics,
    rows: withIntervals(entries, options),
    disagreements: disagreementsOf(
      entries.flatMap(({ estimate, bias }) => (bias === "none" ? [estimate] : [])),
    ),
    naive: naiveAgreement(judged),
    ...(missing && judged.chain === undefined ? { sensitivity: sensitivityBounds(judged, { level }) } : {}),
  };
}

const CAVEATS: Readonly<Record<Exclude<EstimateBias, "none">, string>> = {
  "model error": "the interval leaves out the model's own error",
  "cut weights": "biased where large weights are cut; the interval leaves that bias out",
};

function estimated(log: LoggedDecisions, rng: Rng): LoggedDecisions {
  checkWithoutPropensities(log);
  return withEstimatedPropensities(log, { rng: rng.split("propensities") });
}

/** Undefined if the columns do not allow a model. */
function predictionsOf(
  log: LoggedDecisions,
  { rng, predictions }: PanelOptions,
): RewardPredictions | undefined {
  if (predictions !== undefined || log.candidates === undefined) return predictions;
  if (log.chain === undefined) return crossFitRewards(log, { rng: rng.split("rewards") });
  return log.context === undefined ? undefined : crossFitQ(log, { rng: rng.split("values") });
}

function withIntervals(entries: readonly PanelEntry[], options: PanelOptions): PanelRow[] {
  const { rng, level = 0.95, replicates = 1000, range } = options;
  const draws = bootstrap(
    entries.map(({ estimate }) => estimate),
    { rng: rng.split("bootstrap"), replicates },
  );
  return entries.map((entry, i) => {
    const { estimate, bias } = entry;
    const intervals = asymptoticIntervals(estimate, { replicates: draws[i]!, level });
    // The promised range is the range of w·r, the term of IPS only.
    if (range !== undefined && estimate.name === IPS && unitValues(estimate) !== undefined) {
      intervals.push(
        hoeffdingInterval(estimate, { range, level }),
        bernsteinInterval(estimate, { range, level }),
        confidenceSequence(estimate, { range, level }),
      );
    }
    const caveat = bias === "none" ? {} : { caveat: CAVEATS[bias] };
    return { ...entry, standardError: standardError(estimate), intervals, ...caveat };
  });
}

/** Percentile and Student-t intervals, both widened if skewness or rare outcomes make them too narrow. */
export function asymptoticIntervals(
  estimate: Estimate,
  { replicates, level }: { replicates: Float64Array; level: number },
): Interval[] {
  const corrected = correctedInterval(estimate, level);
  return [widened(percentileInterval(replicates, level), corrected), corrected];
}

/** Probability of a false disagreement on a correct log, over all pairs of estimators that should agree. It does not
 *  depend on the level of the intervals. */
export const FALSE_ALARMS = 0.002;

/** A smaller difference, in units of the larger standard error, changes no conclusion:
 *  SNIPS has a bias of order 1/n. */
const NEGLIGIBLE = 0.5;
/** Relative to the estimates: their sums are formed in more than one order. */
const ROUNDING = 1e-9;

/** Pairs whose paired difference excludes 0, corrected for the number of pairs, and is large enough to matter. Pass
 *  only estimators that should agree: with the same expectation up to order 1/n. The direct method and estimators that
 *  cut weights do not qualify. */
export function disagreementsOf(estimates: readonly Estimate[], alarms = FALSE_ALARMS): Disagreement[] {
  const pairs = (estimates.length * (estimates.length - 1)) / 2;
  const found: Disagreement[] = [];
  for (const [i, left] of estimates.entries()) {
    for (const right of estimates.slice(i + 1)) {
      const gap = difference(left, right);
      const least = Math.max(
        NEGLIGIBLE * Math.max(standardError(left), standardError(right)),
        ROUNDING * Math.max(Math.abs(left.value), Math.abs(right.value)),
      );
      if (Math.abs(gap.value) <= least) continue;
      const interval = correctedInterval(gap, 1 - alarms / pairs);
      if (interval.low > 0 || interval.high < 0)
        found.push({ left: left.name, right: right.name, difference: interval });
    }
  }
  return found;
}
