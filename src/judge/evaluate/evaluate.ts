/** Is the learned policy better? Every contender on the same rows, by the path that the router takes.
 *  In: judge rows, a router, an Rng. Out: diagnostics, then values with intervals, differences paired row by row, liveness
 *  and the cost–quality frontier; refusals with reasons where the log cannot say. Pure. Does not decide: gates do. */
import type { Router } from "../../policy/index.ts";
import {
  bootstrap,
  difference,
  type Estimate,
  type Interval,
  percentileInterval,
  standardError,
  studentInterval,
  type Verdict,
} from "../ope/index.ts";
import { type Contender, contendersOf, type Field, routerOf } from "./contenders.ts";
import { type CostQuality, costQualityOf } from "./cost-quality.ts";
import { Judging, type JudgingOptions } from "./evaluation-data.ts";
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
  /** How its values were found. */
  readonly basis: "off-policy" | "on-policy" | "full information" | "refused";
  readonly values: Partial<Readonly<Record<Measure, Valued>>>;
  /** Diagnostics and all estimators, by measure, where the log was asked. */
  readonly panels: Partial<Readonly<Record<Measure, Verdict>>>;
  readonly reasons: readonly string[];
}

export interface Comparison {
  readonly measure: Measure;
  readonly against: string;
  readonly difference: Valued;
  /** By the wider of the two intervals. */
  readonly says: "better" | "worse" | "no difference shown";
}

export interface Evaluation {
  readonly rows: number;
  readonly units: number;
  readonly level: number;
  readonly certification: "certified" | "not certified";
  readonly measures: readonly Measure[];
  readonly candidates: readonly string[];
  readonly liveness: Liveness;
  readonly contenders: readonly ContenderReport[];
  readonly comparisons: readonly Comparison[];
  /** Absent with the reason where there are no two candidates to trade. */
  readonly frontier: CostQuality | { readonly absent: string };
}

export function evaluatePolicy(
  rows: readonly JudgedRow[],
  options: JudgingOptions & { readonly field: Field },
): Evaluation {
  const { field, ...rest } = options;
  const level = options.level ?? 0.95;
  const judging = new Judging(rows, rest);
  const router: Router = routerOf(field);
  const contenders = contendersOf(field, { oracle: judging.full ? "reward" : undefined });
  const reports = contenders.map((each) => reportOn(judging, each));
  return {
    rows: rows.length,
    units: judging.units.count,
    level,
    certification: judging.certified ? "certified" : "not certified",
    measures: judging.measures,
    candidates: judging.candidates,
    liveness: livenessOf(rows, field),
    contenders: reports,
    comparisons: comparisonsOf(judging, reports),
    frontier: costQualityOf(judging, { router, quality: qualityOf(judging.measures) }),
  };
}

function reportOn(judging: Judging, { name, about, distribution }: Contender): ContenderReport {
  if (distribution === "logged") {
    const estimates = judging.measures.map((measure) => [measure, judging.logged(measure)] as const);
    return { name, about, basis: "on-policy", values: valued(judging, estimates), panels: {}, reasons: [] };
  }
  const target = judging.target(distribution);
  const estimates = () =>
    judging.measures.map((measure) => [measure, judging.value("DR", target, measure)] as const);
  if (judging.full) {
    const known = estimates().map(([measure, each]) => [measure, { ...each, name: "known" }] as const);
    return {
      name,
      about,
      basis: "full information",
      values: valued(judging, known),
      panels: {},
      reasons: [],
    };
  }
  const panels = Object.fromEntries(
    judging.measures.map((measure) => [measure, judging.panel(target, measure)]),
  ) as Record<Measure, Verdict>;
  // Support is a matter of weights, the same for every measure.
  const first = panels[judging.measures[0]!];
  if (first.kind === "refused")
    return { name, about, basis: "refused", values: {}, panels, reasons: first.reasons };
  return { name, about, basis: "off-policy", values: valued(judging, estimates()), panels, reasons: [] };
}

/** Bootstrap and Student-t beside every estimate. One seed: all contenders are resampled alike. */
export function valued<Key extends string>(
  { options }: Judging,
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
        intervals: [percentileInterval(draws[i]!, level), studentInterval(estimate, level)],
      },
    ]),
  ) as unknown as Record<Key, Valued>;
}

/** The learned policy against everyone else, on the same rows. */
function comparisonsOf(judging: Judging, [learned, ...others]: readonly ContenderReport[]): Comparison[] {
  const pairs = others.flatMap((other) =>
    judging.measures.flatMap((measure) => {
      const [mine, theirs] = [learned!.values[measure], other.values[measure]];
      if (mine === undefined || theirs === undefined) return [];
      return [{ measure, against: other.name, estimate: difference(mine.estimate, theirs.estimate) }];
    }),
  );
  if (pairs.length === 0) return [];
  const found = valued(
    judging,
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
