/** Compares a learned policy with its baselines on the same rows, through the router's code path.
 *  In: judge rows, a router, an Rng. Out: diagnostics, then values with intervals, differences paired row by row,
 *  liveness and the cost–quality frontier. If the log does not support an estimate, it gives a refusal with reasons.
 *  Pure. Does not decide: the gate does. */
import { given } from "../../base/index.ts";
import type { StaticTable } from "../../policy/index.ts";
import {
  asymptoticIntervals,
  bootstrap,
  difference,
  type Estimate,
  type Interval,
  type PanelResult,
  standardError,
} from "../ope/index.ts";
import { type Contender, contendersOf, type RouterSetup, routerOf } from "./contenders.ts";
import { type CostQuality, costQualityOf } from "./cost-quality.ts";
import { checkData, type DataFinding } from "./data-check.ts";
import { EvaluationData, type EvaluationOptions } from "./evaluation-data.ts";
import { isBurden, type JudgedRow, type Measure, qualityOf } from "./judged-row.ts";
import { type Liveness, livenessOf } from "./liveness.ts";

export interface Valued {
  readonly estimate: Estimate;
  readonly standardError: number;
  readonly intervals: readonly Interval[];
}

export interface ContenderReport {
  readonly name: string;
  readonly about: string;
  /** Method behind the contender's values. */
  readonly basis: "off-policy" | "on-policy" | "full information" | "refused";
  readonly values: Partial<Readonly<Record<Measure, Valued>>>;
  /** Diagnostics and all estimators, by measure, if the values come from the log. */
  readonly panels: Partial<Readonly<Record<Measure, PanelResult>>>;
  readonly reasons: readonly string[];
}

interface Comparison {
  readonly measure: Measure;
  readonly against: string;
  readonly difference: Valued;
  /** Conclusion from the wider of the two intervals. */
  readonly says: "better" | "worse" | "no difference shown";
}

export interface Evaluation {
  readonly rows: number;
  readonly units: number;
  readonly level: number;
  readonly certification: "certified" | "not certified";
  /** Faults of the log itself. Shown before any number. */
  readonly findings: readonly DataFinding[];
  readonly measures: readonly Measure[];
  readonly candidates: readonly string[];
  readonly liveness: Liveness;
  readonly contenders: readonly ContenderReport[];
  readonly comparisons: readonly Comparison[];
  /** Present if whole chains are judged. Values are then returns of episodes. */
  readonly chains?: EvaluationData["chains"];
  /** Absent, with the reason, if there are no two candidates to trade. */
  readonly frontier: CostQuality | { readonly absent: string };
}

export function evaluatePolicy(
  rows: readonly JudgedRow[],
  options: EvaluationOptions & {
    readonly setup: RouterSetup;
    /** A table that always names the best single candidate, chosen on the training rows. */
    readonly single?: StaticTable | undefined;
  },
): Evaluation {
  const { setup, single, ...rest } = options;
  const level = options.level ?? 0.95;
  const data = new EvaluationData(rows, rest);
  const router = routerOf(setup);
  const contenders = contendersOf(setup, { single, oracle: data.full ? "reward" : undefined });
  const findings = checkData(rows, options.discount);
  const trusted = findings.every(({ severity }) => severity !== "refuse");
  const reports = contenders.map((each) => reportOn(data, each));
  return {
    rows: rows.length,
    units: data.units.count,
    level,
    certification: data.certified && trusted ? "certified" : "not certified",
    findings,
    measures: data.measures,
    candidates: data.candidates,
    liveness: livenessOf(rows, setup),
    contenders: reports,
    comparisons: comparisonsOf(data, reports),
    ...given({ chains: data.chains }),
    frontier:
      data.chains === undefined
        ? costQualityOf(data, { router, quality: qualityOf(data.measures) })
        : { absent: "it trades single decisions, and these are chains" },
  };
}

function reportOn(data: EvaluationData, { name, about, distribution }: Contender): ContenderReport {
  if (distribution === "logged") {
    const estimates = data.measures.map((measure) => [measure, data.logged(measure)] as const);
    return { name, about, basis: "on-policy", values: valued(data, estimates), panels: {}, reasons: [] };
  }
  const target = data.target(distribution);
  const estimates = () => data.measures.map((measure) => [measure, data.value(target, measure)] as const);
  if (data.full) {
    return {
      name,
      about,
      basis: "full information",
      values: valued(data, estimates()),
      panels: {},
      reasons: [],
    };
  }
  const panels = Object.fromEntries(
    data.measures.map((measure) => [measure, data.panel(target, measure)]),
  ) as Record<Measure, PanelResult>;
  // Support depends only on the weights, so it is the same for every measure.
  const first = panels[data.measures[0]!];
  if (first.kind === "refused")
    return { name, about, basis: "refused", values: {}, panels, reasons: first.reasons };
  return { name, about, basis: "off-policy", values: valued(data, estimates()), panels, reasons: [] };
}

/** Intervals for every estimate. All use the same seed, so all contenders get the same resamples. */
export function valued<Key extends string>(
  { options }: EvaluationData,
  estimates: readonly (readonly [Key, Estimate])[],
): Record<Key, Valued> {
  const { rng, level = 0.95, replicates = 1000 } = options;
  const draws = bootstrap(
    estimates.map(([, estimate]) => estimate),
    { rng: rng.split("bootstrap"), replicates },
  );
  return Object.fromEntries(
    estimates.map(([key, estimate], i) => [
      key,
      {
        estimate,
        standardError: standardError(estimate),
        intervals: asymptoticIntervals(estimate, { replicates: draws[i]!, level }),
      },
    ]),
  ) as unknown as Record<Key, Valued>;
}

/** The learned policy against every other contender, on the same rows. */
function comparisonsOf(data: EvaluationData, [learned, ...others]: readonly ContenderReport[]): Comparison[] {
  const pairs = others.flatMap((other) =>
    data.measures.flatMap((measure) => {
      const [mine, theirs] = [learned!.values[measure], other.values[measure]];
      if (mine === undefined || theirs === undefined) return [];
      return [{ measure, against: other.name, estimate: difference(mine.estimate, theirs.estimate) }];
    }),
  );
  if (pairs.length === 0) return [];
  const found = valued(
    data,
    pairs.map(({ estimate }, i) => [String(i), estimate] as const),
  );
  return pairs.map(({ measure, against }, i) => {
    const each = found[String(i)]!;
    return { measure, against, difference: each, says: sayOf(each, isBurden(measure)) };
  });
}

function sayOf({ intervals }: Valued, burden: boolean): Comparison["says"] {
  const above = intervals.every(({ low }) => low > 0);
  const below = intervals.every(({ high }) => high < 0);
  if (!above && !below) return "no difference shown";
  return above === burden ? "worse" : "better";
}
