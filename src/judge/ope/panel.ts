/** Judges one target policy on one log: diagnostics, then a refusal or all estimators side by side.
 *  In: decisions, an Rng, options. Out: a panel. Pure; does not read, print or decide. */
import type { Rng } from "../../base/index.ts";
import { type Diagnostics, diagnose } from "./diagnostics.ts";
import {
  chainDr,
  difference,
  directMethod,
  doublyRobust,
  drShrinkage,
  type Estimate,
  fittedQValue,
  ips,
  lambdaGrid,
  naiveAgreement,
  perDecisionIs,
  snips,
  standardError,
  switchDr,
  tuneLambda,
  unitValues,
  weightedPerDecisionIs,
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
import { checkDecisions, checkWithoutPropensities, type LoggedDecisions, weightsOf } from "./log/index.ts";
import {
  crossFitQ,
  crossFitRewards,
  type RewardPredictions,
  withEstimatedPropensities,
} from "./models/index.ts";
import { explainFaults, type SupportFault, type SupportLimits, supportFaults } from "./support.ts";

interface PanelOptions {
  readonly rng: Rng;
  readonly level?: number;
  readonly replicates?: number;
  /** Range of one w·r, known before the data; adds the finite-sample and any-time bounds for IPS. */
  readonly range?: Range;
  readonly limits?: SupportLimits;
  /** Predictions of a model that has not seen these rows; otherwise a ridge model is cross-fitted. */
  readonly predictions?: RewardPredictions;
  /** For logs without propensities: estimate them and label the result. Otherwise such logs are an error. */
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
  /** Mean reward where the target agrees with the log: biased, shown for comparison only. */
  readonly naive: number;
  /** Present where propensities were estimated. */
  readonly sensitivity?: readonly SensitivityBound[];
}

export interface PanelRow {
  readonly estimate: Estimate;
  readonly standardError: number;
  readonly intervals: readonly Interval[];
  /** The chosen tuning parameter of Switch-DR and DRos. */
  readonly lambda?: number;
  /** What the interval leaves out, where it leaves something out. */
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
  if (faults.length > 0) return { kind: "refused", diagnostics, faults, reasons: explainFaults(faults) };
  const level = options.level ?? 0.95;
  const tuned =
    judged.chain === undefined ? banditEstimates(judged, options) : chainEstimates(judged, options);
  return {
    kind: "estimated",
    certification: missing ? "not certified" : "certified",
    diagnostics,
    rows: withIntervals(tuned, options),
    disagreements: disagreementsOf(
      tuned.flatMap(({ estimate, caveat }) => (caveat === undefined ? [estimate] : [])),
    ),
    naive: naiveAgreement(judged),
    ...(missing && judged.chain === undefined ? { sensitivity: sensitivityBounds(judged, { level }) } : {}),
  };
}

type PanelEntry = Pick<PanelRow, "estimate" | "lambda" | "caveat">;

const MODEL_ERROR = "the interval leaves out the model's own error";
const CUT_BIAS = "biased where large weights are cut; the interval leaves that bias out";

function estimated(log: LoggedDecisions, rng: Rng): LoggedDecisions {
  checkWithoutPropensities(log);
  return withEstimatedPropensities(log, { rng: rng.split("propensities") });
}

function banditEstimates(log: LoggedDecisions, { rng, predictions }: PanelOptions): PanelEntry[] {
  const plain: PanelEntry[] = [{ estimate: ips(log) }, { estimate: snips(log) }];
  if (predictions === undefined && log.candidates === undefined) return plain;
  const q = predictions ?? crossFitRewards(log, { rng: rng.split("rewards") });
  const grid = lambdaGrid(weightsOf(log));
  return [
    ...plain,
    { estimate: directMethod(log, q), caveat: MODEL_ERROR },
    { estimate: doublyRobust(log, q) },
    { ...tuneLambda(grid, (lambda) => switchDr(log, q, lambda)), caveat: CUT_BIAS },
    // ŵ ≤ √λ/2: squares of weights put the cap on the same scale as Switch-DR's.
    {
      ...tuneLambda([Number.POSITIVE_INFINITY, ...grid.map((w) => 4 * w * w)], (lambda) =>
        drShrinkage(log, q, lambda),
      ),
      caveat: CUT_BIAS,
    },
  ];
}

function chainEstimates(log: LoggedDecisions, { rng, predictions }: PanelOptions): PanelEntry[] {
  const plain: PanelEntry[] = [{ estimate: perDecisionIs(log) }, { estimate: weightedPerDecisionIs(log) }];
  if (predictions === undefined && (log.candidates === undefined || log.context === undefined)) return plain;
  const q = predictions ?? crossFitQ(log, { rng: rng.split("values") });
  return [...plain, { estimate: chainDr(log, q) }, { estimate: fittedQValue(log, q), caveat: MODEL_ERROR }];
}

function withIntervals(tuned: readonly PanelEntry[], options: PanelOptions): PanelRow[] {
  const { rng, level = 0.95, replicates = 1000, range } = options;
  const draws = bootstrap(
    tuned.map(({ estimate }) => estimate),
    { rng: rng.split("bootstrap"), replicates },
  );
  return tuned.map(({ estimate, ...rest }, i) => {
    const intervals = asymptoticIntervals(estimate, { replicates: draws[i]!, level });
    // The promised range is that of w·r, which is IPS's term and no other's.
    if (range !== undefined && estimate.name === "IPS" && unitValues(estimate) !== undefined) {
      intervals.push(
        hoeffdingInterval(estimate, { range, level }),
        bernsteinInterval(estimate, { range, level }),
        confidenceSequence(estimate, { range, level }),
      );
    }
    return { estimate, standardError: standardError(estimate), intervals, ...rest };
  });
}

/** Percentiles and Student-t, both widened where skewness or rare outcomes make them too narrow. */
export function asymptoticIntervals(
  estimate: Estimate,
  { replicates, level }: { replicates: Float64Array; level: number },
): Interval[] {
  const corrected = correctedInterval(estimate, level);
  return [widened(percentileInterval(replicates, level), corrected), corrected];
}

/** Probability that estimators that should agree are reported to disagree on a correct log, over all their pairs. It does
 *  not depend on the level of the intervals. */
export const FALSE_ALARMS = 0.002;

/** A difference below this part of the larger standard error changes no conclusion: SNIPS has a bias of order 1/n. */
const NEGLIGIBLE = 0.5;
/** Relative to the estimates: sums are formed in more than one order. */
const ROUNDING = 1e-9;

/** Pairs whose paired difference excludes 0, corrected for the number of pairs, and is large enough to matter. Give it
 *  estimators that should agree: of the same expectation up to order 1/n. The direct method and estimators that cut weights
 *  are not among them. */
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
