/** Evaluates and gates policies if the outcome of every candidate is known: exactly, without propensities.
 *  In: judge rows that carry all outcomes, routers. Out: the results of `evaluatePolicy` and `gatePolicies`. A policy's
 *  value is the mean outcome of its choices; only the rows are a sample. Pure. */
import { plural, RollbookError } from "../base/index.ts";
import { changedShare } from "./changed-share.ts";
import {
  checkData,
  type Evaluation,
  EvaluationData,
  evaluatePolicy,
  type JudgedRow,
  livenessOf,
  type Measure,
  routed,
  routerOf,
} from "./evaluate/index.ts";
import {
  checkRule,
  explainCheck,
  type GateCheck,
  type GatedCandidate,
  type GateOptions,
  type GateRule,
  gateCheck,
  levelOf,
  limitsOf,
  logReasons,
  measuresAsked,
  noCost,
} from "./gate.ts";
import {
  bernsteinInterval,
  confidenceSequence,
  correctedInterval,
  type Estimate,
  type Range,
} from "./ope/index.ts";

/** True if every row carries the outcome of each of its candidates, and no row has a logged propensity. */
export function isFullyKnown(rows: readonly JudgedRow[]): boolean {
  return rows.length > 0 && rows.every(({ known, propensity }) => known !== undefined && propensity === null);
}

/** True if a gate needs no propensities: it asks for outcomes that every row carries for each of its candidates, and
 *  compares with a policy whose choices are known. */
export function isGatedExactly(
  rows: readonly JudgedRow[],
  { rule, baseline }: Pick<GateOptions, "rule" | "baseline">,
): boolean {
  if (isFullyKnown(rows)) return true;
  const asked: Measure[] = rule.epsilonCost === null ? ["quality"] : ["quality", "cost"];
  return (
    baseline !== "behaviour" &&
    rows.length > 0 &&
    rows.every((row) => asked.every((each) => knows(row, each)))
  );
}

type EvaluateOptions = Parameters<typeof evaluatePolicy>[1];

/** The log has no real choice. The first candidate only fills the field and is not a contender. */
export function evaluateExactly(rows: readonly JudgedRow[], options: EvaluateOptions): Evaluation {
  const evaluation = evaluatePolicy(rows.map(asIfChosen), options);
  return {
    ...evaluation,
    // Checks the original rows: the filled-in probabilities must not cause a finding.
    findings: checkData(rows, options.discount),
    contenders: evaluation.contenders.filter(({ name }) => name !== "behaviour"),
    comparisons: evaluation.comparisons.filter(({ against }) => against !== "behaviour"),
  };
}

export function gateExactly(given: readonly JudgedRow[], options: GateOptions): GatedCandidate[] {
  const { candidates, baseline } = options;
  // Every weight is 1, so no propensity limits a bound.
  const rule = { ...options.rule, propensityFloor: 1 };
  checkRule(rule, candidates.length);
  const rows = given.map(asIfChosen);
  if (baseline === "behaviour")
    throw new RollbookError(
      "no-behaviour",
      { baseline },
      "these rows hold the outcome of every candidate, and no policy chose among them. Gate against static or a checkpoint.",
    );
  const data = new EvaluationData(rows, { ...options, ranges: rule.ranges });
  const asked = measuresAsked(data, rule, () => noExactCost(given));
  const against = data.target(routed(routerOf(baseline)));
  // Checks the given rows: the filled-in probabilities must not cause a finding.
  const findings = checkData(given);
  return candidates.map((setup) => {
    const target = data.target(routed(routerOf(setup)));
    const { live, warning } = livenessOf(data.rows, setup);
    const reasons = [
      ...logReasons(data, { findings, asked, policies: [target, against] }),
      ...(live > 0 ? [] : [`${warning}: there is nothing to release`]),
    ];
    const checks =
      reasons.length > 0 ? [] : asked.map((measure) => checkOn(data, { target, against, measure, rule }));
    const all = [
      ...reasons,
      ...checks.filter(({ clears }) => !clears).map((each) => explainCheck(each, rule)),
    ];
    return {
      outcome: all.length === 0 ? ("pass" as const) : ("refuse" as const),
      reasons: all,
      checks,
      support: { effectiveSize: rows.length, largestWeight: 1, meanWeight: 1, unsupportedMass: 0 },
      live,
      changed: changedShare(data, target, against),
    };
  });
}

function noExactCost(rows: readonly JudgedRow[]): RollbookError {
  if (rows.some(({ measures }) => measures.cost === null)) return noCost(rows);
  const lacking = rows.filter((row) => !knows(row, "cost"));
  const id = lacking[0]?.id;
  return new RollbookError(
    "no-cost",
    { rows: rows.length, lacking: lacking.length, id },
    `${plural(lacking.length, "decision")} of ${rows.length}, first ${id}: the outcome of every candidate is known, but not the cost of every candidate. Add these costs, or judge quality alone with --quality-only.`,
  );
}

/** Fills in a certain choice. No weight must use these probabilities, so only measures that are known of every candidate
 *  stay. */
function asIfChosen(row: JudgedRow): JudgedRow {
  const { reward, quality, cost, latency } = row.measures;
  const measures = {
    ...{ reward, quality, cost: knows(row, "cost") ? cost : null },
    latency: knows(row, "latency") ? latency : null,
  };
  const behaviour = row.candidates.map((_, c) => (c === row.chosen ? 1 : 0));
  return { ...row, propensity: 1, behaviour, measures };
}

function knows({ known }: JudgedRow, measure: Measure): boolean {
  return known?.every((each) => each[measure] !== null) === true;
}

function checkOn(
  data: EvaluationData,
  options: { target: Float64Array; against: Float64Array; measure: Measure; rule: GateRule },
): GateCheck {
  const { target, against, measure, rule } = options;
  const [mine, theirs] = [data.value(target, measure), data.value(against, measure)];
  return gateCheck(mine, theirs, {
    measure,
    rule,
    intervalOf: (paired) => intervalOf(paired, { data, measure, rule }),
  });
}

/** Two-sided at 1 − 2α/m: each side errs with probability α/m. A difference lies within ± the range of the measure. */
function intervalOf(
  paired: Estimate,
  { data, measure, rule }: { data: EvaluationData; measure: Measure; rule: GateRule },
): { low: number; high: number } {
  const level = levelOf(rule);
  if (rule.method === "student-t") return correctedInterval(paired, level);
  const { high, low } = limitsOf(data, rule, measure).range;
  const width = high - low;
  const range: Range = { low: -width, high: width };
  return rule.method === "empirical-bernstein"
    ? bernsteinInterval(paired, { range, level })
    : confidenceSequence(paired, { range, level });
}
