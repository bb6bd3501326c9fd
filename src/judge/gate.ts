/** The gate: passes a policy only if the data show that it is not worse than the baseline.
 *  In: judge rows, candidates, a baseline, margins. Out: for each candidate its bounds and the reasons against it.
 *  Pure: the same input and seed give the same answer. Does not seal, serve or exit.
 *
 *  A candidate must pass two checks, each at error α/m. The one-sided lower bound of (its quality − the baseline's) is
 *  at least −ε_q. The upper bound of (its cost − the baseline's) is at most ε_c. Requiring both needs no correction (an
 *  intersection–union test has the level of its parts). Trying m candidates does. Bonferroni's correction holds for any
 *  dependence between the candidates, and it needs only the number of candidates tried elsewhere.
 *
 *  With a discount, quality and cost are returns: Σ γᵗ over the decisions of an episode, by the doubly robust estimator
 *  of chains. Chains have no bounds for any number of rows: the range of a chain's weight grows as (1/p)ᴸ with its
 *  length L, and such a bound would never pass. */
import { plural, RollbookError } from "../base/index.ts";
import type { GateVerdict } from "../contract/index.ts";
import { changedShare } from "./changed-share.ts";
import {
  COSTS_LATER,
  checkData,
  type DataFinding,
  EvaluationData,
  type EvaluationOptions,
  isBurden,
  type JudgedRow,
  livenessOf,
  logFaults,
  type Measure,
  mixedCosts,
  qualityOf,
  type RouterSetup,
  rangeKind,
  routed,
  routerOf,
  type Support,
} from "./evaluate/index.ts";
import {
  bernsteinInterval,
  confidenceSequence,
  correctedInterval,
  difference,
  type Estimate,
  FALSE_ALARMS,
  meanOverUnits,
  type Range,
  standardError,
} from "./ope/index.ts";

export type GateMethod = GateVerdict["rule"]["method"];

export interface GateRule {
  readonly method: GateMethod;
  readonly alpha: number;
  /** Number of candidates tried, here and elsewhere; at least the number given. */
  readonly tried: number;
  readonly epsilonQuality: number;
  /** Null: only quality is checked. */
  readonly epsilonCost: number | null;
  /** The total reward decides, with margin `epsilonQuality`. It is the only measure of the rows. */
  readonly total?: { readonly costWeight?: number };
  /** Stated before the data. Required by the methods that hold for any number of rows. */
  readonly propensityFloor?: number;
  readonly ranges?: Readonly<Partial<Record<"quality" | "cost", Range>>>;
  /** Discount per decision for whole chains. Absent: single decisions. */
  readonly discount?: number;
}

/** Ranges and discount are those of the rule. */
export interface GateOptions extends Omit<EvaluationOptions, "ranges" | "discount"> {
  readonly rule: GateRule;
  readonly candidates: readonly RouterSetup[];
  /** A router, or the behaviour policy of the log. */
  readonly baseline: RouterSetup | "behaviour";
}

export type GateCheck = GateVerdict["candidates"][number]["checks"][number];
export interface GatedCandidate {
  readonly outcome: "pass" | "refuse";
  readonly reasons: readonly string[];
  readonly checks: readonly GateCheck[];
  readonly support: GateVerdict["candidates"][number]["support"];
  readonly live: number;
  /** Share of decisions that differ from the baseline. */
  readonly changed: number;
}

export function gatePolicies(rows: readonly JudgedRow[], options: GateOptions): GatedCandidate[] {
  const { rule, candidates, baseline } = options;
  checkRule(rule, candidates.length);
  if (rule.discount !== undefined && rule.method !== "student-t") throw onlyStudent(rule.method);
  const data = new EvaluationData(rows, { ...options, ranges: rule.ranges, discount: rule.discount });
  const asked = measuresAsked(data, rule, () => noCost(rows));
  const findings = checkData(rows, rule.discount);
  const against = baseline === "behaviour" ? undefined : data.target(routed(routerOf(baseline)));
  return candidates.map((setup) => gateOne(data, { setup, against, asked, rule, findings }));
}

/** The measures that a rule judges. A log that is refused before a bound needs the limits of the rule too: otherwise a
 *  verdict would be sealed without them. */
export function measuresAsked(
  data: EvaluationData,
  rule: GateRule,
  noCostError: () => RollbookError,
): Measure[] {
  const quality = qualityOf(data.measures);
  const asked: Measure[] = rule.epsilonCost === null ? [quality] : [quality, "cost"];
  if (!asked.every((measure) => data.measures.includes(measure))) throw noCostError();
  for (const measure of asked) {
    if (rule.method !== "student-t") limitsOf(data, rule, measure);
    data.requireInside(measure);
  }
  return asked;
}

/** The index of the passing candidate with the best bound on quality. */
export function bestPassing(gated: readonly GatedCandidate[]): number | undefined {
  const passing = gated.flatMap((each, i) =>
    each.outcome === "pass" ? [{ i, bound: each.checks[0]!.bound! }] : [],
  );
  return passing.sort((a, b) => b.bound - a.bound)[0]?.i;
}

interface Case {
  readonly setup: RouterSetup;
  /** Undefined: the baseline is the log. */
  readonly against: Float64Array | undefined;
  readonly asked: readonly Measure[];
  readonly rule: GateRule;
  readonly findings: readonly DataFinding[];
}

function gateOne(data: EvaluationData, of: Case): GatedCandidate {
  const { setup, against, asked, rule, findings } = of;
  const target = data.target(routed(routerOf(setup)));
  const found = data.support(target, asked[0]!);
  const liveness = livenessOf(data.rows, setup);
  const reasons = [
    ...logReasons(data, {
      findings,
      asked,
      policies: against === undefined ? [target] : [target, against],
    }),
    ...(data.certified
      ? []
      : ["propensities were not logged: nothing estimated from guessed propensities is released"]),
    ...jointReasons(
      supportReasons("the candidate", found),
      against === undefined ? [] : supportReasons("the baseline", data.support(against, asked[0]!)),
    ),
    ...(liveness.live > 0 ? [] : [`${liveness.warning}: there is nothing to release`]),
  ];
  const { effectiveSize, largestWeight, meanWeight, unsupported } = found.diagnostics;
  const support = { effectiveSize, largestWeight, meanWeight, unsupportedMass: unsupported.mass };
  const checks =
    reasons.length > 0 ? [] : asked.map((measure) => checkOn(data, { target, against, measure, rule }));
  const missed = checks.filter((each) => !each.clears).map((each) => explainCheck(each, rule));
  const all = [...reasons, ...missed];
  return {
    outcome: all.length === 0 ? "pass" : "refuse",
    reasons: all,
    checks,
    support,
    live: liveness.live,
    changed: changedShare(data, target, against),
  };
}

/** Faults of the log, which apply to every candidate. Heavy tails, where a few decisions make the mean, count against
 *  policies that choose those candidates, unless the range of the measure is stated. */
export function logReasons(
  data: EvaluationData,
  {
    findings,
    asked,
    policies,
  }: Pick<Case, "findings" | "asked"> & { readonly policies: readonly Float64Array[] },
): string[] {
  const chosen = new Set(policies.flatMap((one) => chosenBy(data, one)));
  const tails = findings.filter(
    ({ measure, arm }) =>
      measure !== undefined &&
      asked.includes(measure) &&
      data.statedRange(measure) === undefined &&
      chosen.has(arm!),
  );
  return [
    ...logFaults(findings),
    ...tails.map(
      ({ message, measure }) =>
        `the log: ${message}${measure === "cost" ? " --quality-only judges without it." : ""}`,
    ),
  ];
}

/** A policy that chooses a candidate in more than this share of rows depends on that candidate's mean. */
const OFTEN = 0.05;
function chosenBy({ rows, candidates }: EvaluationData, target: Float64Array): string[] {
  const width = candidates.length;
  return candidates.filter((_, at) => {
    let total = 0;
    for (let i = at; i < target.length; i += width) total += target[i]!;
    return total > OFTEN * rows.length;
  });
}

/** A reason that holds for both the candidate and the baseline is stated once, about the log. */
function jointReasons(candidate: readonly string[], baseline: readonly string[]): string[] {
  const bare = (reason: string) => reason.replace(/^the (candidate|baseline): /, "");
  const shared = new Set(baseline.map(bare).filter((reason) => candidate.map(bare).includes(reason)));
  const own = [...candidate, ...baseline].filter((reason) => !shared.has(bare(reason)));
  return [...shared, ...own];
}

function supportReasons(
  who: string,
  { reasons, disagreements }: Pick<Support, "reasons" | "disagreements">,
): string[] {
  return [
    ...reasons.map((reason) => `${who}: ${reason}`),
    ...disagreements.map(
      ({ left, right, difference: { low, high } }) =>
        `${who}: ${left} and ${right} disagree (difference in ${low.toPrecision(3)} … ${high.toPrecision(3)}, by chance in about 1 log of ${1 / FALSE_ALARMS}): the logged probabilities are wrong, or the log rarely has the policy's choices. Check that the logged probability is that of the final choice; if it is, record with more exploration`,
    ),
  ];
}

interface MeasureCase extends Pick<Case, "against" | "rule"> {
  readonly target: Float64Array;
  readonly measure: Measure;
}

function checkOn(data: EvaluationData, question: MeasureCase): GateCheck {
  const { target, against, measure, rule } = question;
  const level = levelOf(rule);
  if (rule.method === "student-t") {
    const mine = data.value(target, measure);
    const theirs = against === undefined ? data.logged(measure) : data.value(against, measure);
    return gateCheck(mine, theirs, {
      measure,
      rule,
      intervalOf: (paired) => correctedInterval(paired, level),
    });
  }
  const { baseline, paired, range, most } = centredIps(data, question);
  const { low, high } =
    rule.method === "empirical-bernstein"
      ? bernsteinInterval(paired, { range, level })
      : confidenceSequence(paired, { range, level });
  const interval = { low: Math.max(low, -most), high: Math.min(high, most) };
  return checkOf({ measure, rule, baseline, paired, interval });
}

/** Two-sided at 1 − 2α/m: each side errs with probability α/m. */
export function levelOf({ alpha, tried }: GateRule): number {
  return 1 - (2 * alpha) / tried;
}

/** The check of one measure: the paired difference of two values, and its bound against the margin. */
export function gateCheck(
  mine: Estimate,
  theirs: Estimate,
  options: {
    measure: Measure;
    rule: GateRule;
    intervalOf: (paired: Estimate) => Bounds;
  },
): GateCheck {
  const { measure, rule, intervalOf } = options;
  const paired = difference(mine, theirs);
  const check = checkOf({ measure, rule, baseline: theirs.value, paired, interval: intervalOf(paired) });
  return { ...check, candidate: mine.value };
}

interface Bounds {
  readonly low: number;
  readonly high: number;
}

/** Builds a check. All its numbers come from one estimate: the bounded paired difference. */
function checkOf(found: {
  measure: Measure;
  rule: GateRule;
  baseline: number;
  paired: Estimate;
  interval: Bounds;
}): GateCheck {
  const { measure, rule, baseline, paired, interval } = found;
  const burden = isBurden(measure);
  const epsilon = burden ? rule.epsilonCost! : rule.epsilonQuality;
  const bound = withoutNoise(burden ? interval.high : interval.low, baseline);
  const gap = withoutNoise(paired.value, baseline);
  return {
    measure: measure as GateCheck["measure"],
    candidate: baseline + gap,
    baseline,
    difference: gap,
    standardError: finiteOrNull(standardError(paired)),
    bound: finiteOrNull(bound),
    epsilon,
    clears: burden ? bound <= epsilon : bound >= -epsilon,
  };
}

/** Equal values that were summed in different orders differ by rounding.
 *  A margin of 0 must not refuse for that reason. */
function withoutNoise(gap: number, value: number): number {
  return Math.abs(gap) < 1e-12 * Math.max(1, Math.abs(value)) ? 0 : gap;
}

/** IPS of r − mid. The baseline's value is mid + w₀·(r − mid), the difference (π_c − π_0)/p·(r − mid), each per unit.
 *  Centring at the middle of the range adds no bias, since both policies sum to 1. It halves the range of the
 *  difference, which is ±(high − low)/2p_min. Units are in the order of their first row. Two values in the range differ
 *  by at most `most`, also if weights are large. */
function centredIps(
  data: EvaluationData,
  { target, against, measure, rule }: MeasureCase,
): { baseline: number; paired: Estimate; range: Range; most: number } {
  const { range, least } = limitsOf(data, rule, measure);
  const middle = (range.low + range.high) / 2;
  const { units, rows, propensities, candidates } = data;
  const [theirs, gaps] = [new Float64Array(rows.length), new Float64Array(rows.length)];
  for (const [i, row] of rows.entries()) {
    // The range is checked up to rounding.
    const value = Math.min(range.high, Math.max(range.low, row.measures[measure]!));
    const p = propensities[i]!;
    if (p < least)
      throw new RollbookError(
        "range-broken",
        { decision: row.id, propensity: p },
        `decision ${row.id} was chosen with probability ${p}, below --propensity-floor ${least}. State a lower --propensity-floor (in a loop: gate.propensityFloor).`,
      );
    const at = i * candidates.length + candidates.indexOf(row.candidates[row.chosen]!.id);
    // The behaviour policy of the log has weight 1.
    const baselineWeight = against === undefined ? 1 : against[at]! / p;
    theirs[i] = middle + baselineWeight * (value - middle);
    gaps[i] = (target[at]! / p - baselineWeight) * (value - middle);
  }
  const half = (range.high - range.low) / 2 / least;
  return {
    baseline: meanOverUnits("centred IPS", theirs, { units }).value,
    paired: meanOverUnits("centred IPS difference", gaps, { units }),
    range: { low: -half, high: half },
    most: range.high - range.low,
  };
}

/** Explains a failed check. The bound is then always on the wrong side of 0, because a margin is at least 0. */
export function explainCheck(check: GateCheck, { method, alpha, tried }: GateRule): string {
  const { measure, difference: gap, bound, epsilon } = check;
  const worse = isBurden(measure as Measure) ? "higher" : "worse";
  const most = bound === null ? `${worse} by any amount` : `up to ${Math.abs(bound).toPrecision(3)} ${worse}`;
  const level = `${(100 * (1 - alpha / tried)).toPrecision(4)} % one-sided`;
  return `${measure}: it may be ${most} (${method}, ${level}), and the margin is ${epsilon}; the estimated difference is ${signed(gap)}`;
}

const signed = (value: number) => `${value < 0 ? "" : "+"}${value.toPrecision(3)}`;
const finiteOrNull = (value: number) => (Number.isFinite(value) ? value : null);

export function checkRule({ alpha, tried, epsilonQuality, epsilonCost }: GateRule, given: number): void {
  const wrong =
    given === 0
      ? "no candidate is given. Name one"
      : !(alpha > 0 && alpha < 0.5)
        ? `alpha is ${alpha}. Give a number above 0 and below 0.5`
        : !(epsilonQuality >= 0) || !(epsilonCost === null || epsilonCost >= 0)
          ? "a margin is below 0. Give 0 or more"
          : triedFault(tried, given);
  if (wrong !== undefined)
    throw new RollbookError("bad-rule", { alpha, tried, given }, `the gate cannot apply its rule: ${wrong}.`);
}

/** Undefined if the bound allows for at least as many policies as are given. */
export function triedFault(tried: number, given: number): string | undefined {
  if (Number.isInteger(tried) && tried >= given) return undefined;
  return `${plural(given, "candidate")} given, and --candidates-tried is ${tried}. Count every candidate that was tried`;
}

export function noCost(
  rows: readonly Pick<JudgedRow, "id" | "atMs" | "measures" | "unusedUsd">[],
): RollbookError {
  const lacking = rows.filter(({ measures }) => measures.cost === null);
  const id = lacking[0]?.id;
  const mixed = mixedCosts(rows);
  return new RollbookError(
    "no-cost",
    { rows: rows.length, lacking: lacking.length, id },
    mixed !== undefined
      ? `${mixed.kinds}. ${mixed.remedy} Or gate quality alone with --quality-only.`
      : `no cost is known of ${plural(lacking.length, "decision")} of ${rows.length}, first ${id}. Judge quality alone with --quality-only. ${COSTS_LATER}${lacking.length < rows.length ? " Or judge a file without these decisions (--data)." : ""}`,
  );
}

function onlyStudent(method: string): RollbookError {
  return new RollbookError(
    "bad-rule",
    { method },
    `${method} bounds are not offered for chains of decisions: the range of their weights grows with every decision. Use --method student-t (in a loop: gate.method), or judge each decision by its own reward with --discount 0 (in a loop: discount: 0).`,
  );
}

/** The limits that a bound for any number of rows needs. */
export function limitsOf(
  data: EvaluationData,
  { method, propensityFloor: least }: Pick<GateRule, "method" | "propensityFloor">,
  measure: Measure,
): { range: Range; least: number } {
  const range = data.statedRange(measure);
  if (range !== undefined && least !== undefined) return { range, least };
  const lacking = [
    ...(range === undefined
      ? [{ limit: `the range of ${measure}`, flag: `--${rangeKind(measure)}-range` }]
      : []),
    ...(least === undefined ? [{ limit: "the least propensity", flag: "--propensity-floor" }] : []),
  ];
  const listed = (of: "limit" | "flag") => lacking.map((each) => each[of]).join(" and ");
  throw new RollbookError(
    "range-unknown",
    { method, measure },
    `--method ${method} needs ${listed("limit")}, fixed before the data was seen. State ${listed("flag")}, or use --method student-t.`,
  );
}
