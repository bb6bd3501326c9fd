/** Judges a policy that is known only by its probabilities: logged by a shadow, written by another system, or
 *  tabulated. In: judge rows, and for each row π_e of every candidate or of the chosen one. Out: diagnostics and
 *  estimates by measure, and the paired difference to the behaviour policy. With only the chosen candidate's
 *  probability no model can be used: the estimates are IPS and SNIPS. Pure. */
import { given, RollbookError } from "../../base/index.ts";
import { difference, judgePolicy, type LoggedDecisions, type PanelResult, snips } from "../ope/index.ts";
import { checkData, type DataFinding } from "./data-check.ts";
import { type Valued, valued } from "./evaluate.ts";
import { EvaluationData, type EvaluationOptions } from "./evaluation-data.ts";
import type { JudgedRow, Measure } from "./judged-row.ts";

export interface TargetProbabilities {
  /** One entry per row: probabilities of all candidates in the order of the row, or only of the chosen one. */
  readonly of: "candidates" | "chosen";
  readonly values: readonly (readonly number[])[];
}

export interface KnownTargetReport {
  readonly rows: number;
  readonly units: number;
  readonly level: number;
  readonly basis: TargetProbabilities["of"];
  readonly findings: readonly DataFinding[];
  readonly certification: "certified" | "not certified";
  readonly measures: readonly Measure[];
  readonly panels: Partial<Readonly<Record<Measure, PanelResult>>>;
  /** Target minus the mean of the log, by DR. Without distributions, by SNIPS. */
  readonly differences: Partial<Readonly<Record<Measure, Valued>>>;
  /** The mean of the log. */
  readonly logged: Partial<Readonly<Record<Measure, number>>>;
}

export function evaluateTarget(
  rows: readonly JudgedRow[],
  { target, ...options }: EvaluationOptions & { readonly target: TargetProbabilities },
): KnownTargetReport {
  // Nothing is trained from the log, so all rows judge.
  const data = new EvaluationData(rows, { ...options, judgeShare: 1 });
  checkTarget(rows, target);
  const findings = checkData(rows);
  const asked = target.of === "candidates" ? ofCandidates(data, target) : ofChosen(data, target);
  const panels = Object.fromEntries(data.measures.map((measure) => [measure, asked(measure).panel]));
  const estimated = data.measures.flatMap((measure) => {
    const { panel, estimate } = asked(measure);
    return panel.kind === "refused" ? [] : [[measure, difference(estimate(), data.logged(measure))] as const];
  });
  const trusted = findings.every(({ severity }) => severity !== "refuse");
  return {
    rows: rows.length,
    units: data.units.count,
    level: options.level ?? 0.95,
    basis: target.of,
    findings,
    certification: data.certified && trusted ? "certified" : "not certified",
    measures: data.measures,
    panels,
    differences: estimated.length === 0 ? {} : valued(data, estimated),
    logged: Object.fromEntries(estimated.map(([measure]) => [measure, data.logged(measure).value])),
  };
}

function ofCandidates(data: EvaluationData, { values }: TargetProbabilities) {
  const matrix = data.target((_, i) => values[i]!);
  return (measure: Measure) => ({
    panel: data.panel(matrix, measure),
    estimate: () => data.value(matrix, measure),
  });
}

function ofChosen(data: EvaluationData, { values }: TargetProbabilities) {
  const { rng, level, replicates, limits, judgeShare, unit } = data.options;
  const logOf = (measure: Measure): LoggedDecisions => {
    const { candidates: _, context: __, ...log } = data.log(measure);
    return { ...log, target: Float64Array.from(values, ([p]) => p!) };
  };
  return (measure: Measure) => ({
    panel: judgePolicy(logOf(measure), {
      ...{ rng: rng.split("panel"), judgeShare, unit },
      ...given({ level, replicates, limits }),
    }),
    estimate: () => snips(logOf(measure)),
  });
}

const SUM_TOLERANCE = 1e-6;

function checkTarget(rows: readonly JudgedRow[], { of, values }: TargetProbabilities): void {
  for (const [i, { id, candidates }] of rows.entries()) {
    const given = values[i] ?? [];
    const wanted = of === "candidates" ? candidates.length : 1;
    const bad = given.find((p) => !(p >= 0 && p <= 1));
    const sum = given.reduce((total, p) => total + p, 0);
    const fault =
      given.length !== wanted
        ? `${given.length} target probabilities, ${wanted} needed`
        : bad !== undefined
          ? `target probability ${bad} is not in [0, 1]`
          : of === "candidates" && Math.abs(sum - 1) > SUM_TOLERANCE
            ? `target probabilities add up to ${sum}`
            : undefined;
    if (fault !== undefined)
      throw new RollbookError(
        "bad-target",
        { decision: id },
        `decision ${id}: ${fault}. Correct the target.`,
      );
  }
}
