/** Renders an evaluation for a terminal, and as JSON. Diagnostics come before numbers; refusals and disagreements are
 *  printed explicitly. */
import { joinFaults } from "../../base/index.ts";
import type { LogCheck, PolicyEvaluation } from "../../book/judge/index.ts";
import { isBurden, qualityOf } from "../../judge/evaluate/index.ts";
import type {
  Banded,
  ContenderReport,
  Evaluation,
  KnownTargetReport,
  Measure,
  Valued,
} from "../../judge/index.ts";
import {
  diagnosticLines,
  estimatedLines,
  type Interval,
  methodText,
  type PanelResult,
  type Range,
} from "../../judge/ope/index.ts";
import { figuresText, standing, verdictSentence } from "../data/verdict-sentence.ts";
import { plural, sayOnce, short, table, thousands } from "../format.ts";
import { costLine, judgedText } from "./gate-view.ts";

type EvaluationFacts = Pick<PolicyEvaluation, "judged" | "setup" | "revision" | "kept" | "range">;

/** Renders the judged policy and the verdict; with `verbose`, also the figures between them. */
export function renderEvaluation(
  evaluation: Evaluation,
  facts: EvaluationFacts,
  { verbose }: { verbose: boolean },
): string {
  const blocks = [
    headOf(evaluation, facts),
    ...(verbose ? detailsOf(evaluation, facts) : []),
    ...(facts.kept === undefined ? [] : [keptText(facts.kept, evaluation)]),
    `${verdictSentence(evaluation, { policy: facts.revision.id, unit: facts.judged.rule.unit })}\n`,
  ];
  return blocks.filter((block) => block !== "").join("\n");
}

function detailsOf(evaluation: Evaluation, { range }: EvaluationFacts): string[] {
  const [learned] = evaluation.contenders;
  return [
    panelOf(learned!, evaluation.measures),
    contenderTable(evaluation, range),
    comparisonTable(evaluation),
    frontierText(evaluation, range),
    ...cutNote(evaluation, range),
  ];
}

/** Renders the findings of `data check`; an evaluation prints them before its numbers, in the same words. */
export function renderLogCheck({ rows, units, unlabelled, findings }: LogCheck, unit: string): string {
  return [
    `${plural(rows, "labelled row")} of ${plural(units, unit)}, ${thousands(unlabelled)} unlabelled`,
    ...findings.map(
      ({ kind, severity, message }) => `${severity === "refuse" ? "FAULT" : "WARNING"} (${kind}): ${message}`,
    ),
    ...(findings.length === 0 ? ["no faults found"] : []),
    "",
  ].join("\n");
}

/** Renders the report on a policy that is given by its probabilities. */
export function renderTarget(
  report: KnownTargetReport & { readonly unlabelled: number },
  { unit, verbose }: { unit: string; verbose: boolean },
): string {
  const { rows, units, unlabelled, basis, findings, panels, measures, differences, level } = report;
  const found = measures.flatMap((measure) => {
    const each = differences[measure];
    return each === undefined ? [] : [{ measure, each }];
  });
  const targetFigures = (measure: Measure, difference: Valued) => {
    const theirs = report.logged[measure]!;
    const mine = theirs + difference.estimate.value;
    return figuresText(measure, { mine, theirs, difference, level, measures });
  };
  const verdict =
    found.length === 0
      ? "verdict: none; the log cannot say how good the policy is"
      : `verdict: compared with the policy behind the log, the target shows ${found.map(({ measure, each }) => standing({ measure, says: saysOf(each, measure) }, measures)).join(" and ")}: ${found.map(({ measure, each }) => targetFigures(measure, each)).join("; ")}.${report.certification === "certified" ? "" : " NOT CERTIFIED."}`;
  return [
    `${plural(rows, "row")} of ${plural(units, unit)} judge a target given by the probabilities of ${basis === "candidates" ? "all candidates" : "the chosen candidate"}, ${thousands(unlabelled)} unlabelled`,
    ...findings.map(
      ({ severity, message }) => `${severity === "refuse" ? "NOT CERTIFIED" : "WARNING"}: ${message}`,
    ),
    ...(verbose || found.length === 0 ? [panelOf({ panels }, measures).trimEnd()] : []),
    verdict,
    "",
  ].join("\n");
}

function saysOf({ intervals }: Valued, measure: Measure): "better" | "worse" | "no difference shown" {
  const { low, high } = intervals[0]!;
  if (low <= 0 && high >= 0) return "no difference shown";
  return low > 0 === isBurden(measure) ? "worse" : "better";
}

export function targetJson({ panels, differences, ...rest }: KnownTargetReport) {
  return { ...rest, panels: mapped(panels, plainPanel), differences: mapped(differences, plain) };
}

/** All figures, without the columns behind them. */
export function evaluationJson(evaluation: Evaluation, { judged, setup, revision, kept }: EvaluationFacts) {
  const { contenders, comparisons, ...rest } = evaluation;
  const { rule, leftOut, unlabelled, digest } = judged;
  return {
    revision: { id: revision.id, digest: revision.digest },
    data: { digest, rows: judged.rows.length, unlabelled, leftOut, split: rule },
    router: {
      table: setup.table.digest,
      floor: setup.floor,
      floorFrom: setup.floorFrom,
      exploration: setup.exploration,
    },
    ...rest,
    contenders: contenders.map(({ values, panels, ...each }) => ({
      ...each,
      values: mapped(values, plain),
      panels: mapped(panels, plainPanel),
    })),
    comparisons: comparisons.map((each) => ({ ...each, difference: plain(each.difference) })),
    ...(kept === undefined ? {} : { promise: kept }),
  };
}

function headOf(
  { units, liveness, certification, findings, chains }: Evaluation,
  facts: EvaluationFacts,
): string {
  const { judged, setup, revision } = facts;
  const floor =
    setup.floor === null
      ? "none (the policy never decides)"
      : `${figure(setup.floor)} (${setup.floorFrom === "promise" ? "set by --floor-risk" : setup.floorFrom})`;
  const differs =
    liveness.floor === null ? "" : ` and differs from the table on ${percent(liveness.departs)}`;
  return [
    `${revision.id} (${short(revision.digest)}), ${judgedText({ ...judged, units })}`,
    ...costLine(judged),
    ...(chains === undefined ? [] : [chainLine(chains)]),
    `router: floor ${floor}, exploration ${figure(setup.exploration)}, table ${short(setup.table.digest)}`,
    `the policy decides ${percent(liveness.live)} of rows${differs}; its confidence: median ${figure(liveness.medianConfidence)}, maximum ${figure(liveness.highestConfidence)}`,
    ...findings.map(
      ({ severity, message }) => `${severity === "refuse" ? "NOT CERTIFIED" : "WARNING"}: ${message}`,
    ),
    ...(certification === "certified" || findings.some(({ severity }) => severity === "refuse")
      ? []
      : ["NOT CERTIFIED: propensities were estimated from the log"]),
    "",
  ].join("\n");
}

function chainLine({ episodes, horizon, discount }: NonNullable<Evaluation["chains"]>): string {
  return `whole rollouts: ${thousands(episodes)}, the longest with ${plural(horizon, "decision")}; values are sums of rewards, with discount ${discount} per decision`;
}

/** The error that follows gives the reasons of a refusal. */
function panelOf({ panels }: Pick<ContenderReport, "panels">, measures: readonly Measure[]): string {
  const first = panels[measures[0]!];
  if (first === undefined) return "every outcome is known: nothing had to be estimated\n";
  if (first.kind === "refused")
    return [...diagnosticLines(first.diagnostics), "REFUSED: no estimate.", ""].join("\n");
  const lines = measures.flatMap((measure) => {
    const verdict = panels[measure];
    return verdict?.kind === "estimated"
      ? [`${measure}:`, ...estimatedLines(verdict, measure).map((line) => `  ${line}`)]
      : [];
  });
  return [...diagnosticLines(first.diagnostics), ...lines, ""].join("\n");
}

function contenderTable({ contenders, measures, level }: Evaluation, range: Range | undefined): string {
  const limited = qualityOf(measures);
  const refused = contenders.slice(1).filter(({ basis }) => basis === "refused");
  const rows = table(contenders, [
    { title: "POLICY", cell: (each) => each.name },
    { title: "BASIS", cell: (each) => each.basis },
    ...measures.map((measure) => ({
      title: measure.toUpperCase(),
      cell: (each: ContenderReport) =>
        valueText(each.values[measure], measure === limited ? range : undefined),
    })),
    { title: "", cell: (each) => each.about },
  ]);
  const method = contenders.flatMap(({ values }) => Object.values(values))[0]?.intervals[0];
  const label =
    method === undefined
      ? []
      : [
          `in brackets: ${percent(level)} ${method.method} intervals over units${method.method === "bootstrap" ? ", never narrower than Student-t intervals" : ""}. They are wider if the log is skewed, or too short to show rare outcomes.\n`,
        ];
  // Policies with the same choices are refused for the same reasons, which are printed once.
  const names = new Map<string, string[]>();
  for (const { name, reasons } of refused) {
    const why = joinFaults(reasons);
    names.set(why, [...(names.get(why) ?? []), name]);
  }
  const once = sayOnce([...names.keys()]);
  const told = [...names.values()].map((alike, i) => `${alike.join(", ")} refused: ${once[i]}\n`);
  return [rows, ...label, ...told].join("");
}

function comparisonTable({ comparisons, level }: Evaluation): string {
  if (comparisons.length === 0) return "";
  const note = `${plural(comparisons.length, "comparison")}, each at ${percent(level)} and not corrected for their number\n`;
  const rows = table(comparisons, [
    { title: "LEARNED MINUS", cell: (each) => each.against },
    { title: "MEASURE", cell: (each) => each.measure },
    { title: "DIFFERENCE", cell: (each) => valueText(each.difference) },
    { title: "", cell: (each) => each.says },
  ]);
  return `${rows}${note}`;
}

function frontierText({ frontier, level }: Evaluation, range: Range | undefined): string {
  if ("absent" in frontier) return `frontier: none, since ${frontier.absent}\n`;
  const { weak, strong, apgr, cpt50, cpt80, hull } = frontier;
  const lines = [
    `frontier from ${weak} to ${strong}: APGR ${banded(apgr)}, CPT(50 %) ${banded(cpt50)}, CPT(80 %) ${banded(cpt80)} (${percent(level)} percentile intervals over units)`,
    "  APGR: mean share of the quality gap between the two that routing closes; CPT(x): share of calls to the stronger that closes x of it",
    ...(hull === undefined
      ? []
      : [
          `best quality at each cost, averaged over costs: with the policy ${areaText(hull.area, range)}, with single candidates alone ${areaText(hull.singlesArea, range)}; gain ${areaText(hull.gain, undefined)} (${percent(level)}, cross-fitted)`,
          "  the policy if its floor were another, and single candidates:",
          ...hull.points.map(
            ({ name, cost, quality }) =>
              `    ${name}: cost ${figure(cost)}, quality ${figure(cut(quality, range))}`,
          ),
          ...hull.refused.map(({ name, reasons }) => `    ${name}: refused, ${joinFaults(reasons)}`),
        ]),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

function keptText(
  { alpha, realised, interval, floor, followed }: NonNullable<PolicyEvaluation["kept"]>,
  { liveness: { departs } }: Evaluation,
): string {
  if (floor === null)
    return `--floor-risk: no floor keeps the loss within ${figure(alpha)}, so the static table decides every row.\n`;
  const unknown =
    departs === 0
      ? "The policy chooses as the table on all of these rows, so they cannot show the loss."
      : "These rows cannot show the loss, because they cannot judge the policy.";
  const found =
    realised === undefined || interval === undefined
      ? unknown
      : `On these rows it is ${figure(realised)} [${figure(interval.low)}, ${figure(interval.high)}], ${percent(interval.level)} ${methodText(interval)}.`;
  const basis = followed ? "" : " The floor was not computed again: its calibration rows are not here.";
  return `--floor-risk: the policy decides at or above floor ${figure(floor)}. Training promises that the mean loss of choosing differently from the table is at most ${figure(alpha)}. ${found}${basis}\n`;
}

function valueText(value: Valued | undefined, range?: Range): string {
  if (value === undefined) return "—";
  const [band] = value.intervals as [Interval];
  return banded({ value: value.estimate.value, band }, range);
}

function areaText(area: Banded | undefined, range: Range | undefined): string {
  return area === undefined ? "refused" : banded(area, range);
}

function banded({ value, band }: Banded, range?: Range): string {
  if (value === undefined) return "not reached";
  const show = (each: number) => figure(cut(each, range));
  return band === undefined ? show(value) : `${show(value)} [${show(band.low)}, ${show(band.high)}]`;
}

/** An unbiased estimate may lie outside the range of its quantity. Clipping an interval to the range loses nothing. */
function cut(value: number, range: Range | undefined): number {
  return range === undefined ? value : Math.min(range.high, Math.max(range.low, value));
}

function cutNote({ measures, contenders, frontier }: Evaluation, range: Range | undefined): string[] {
  const hull = "absent" in frontier ? undefined : frontier.hull;
  const ends = [
    ...contenders.flatMap(({ values }) => values[qualityOf(measures)]?.intervals[0] ?? []),
    ...[hull?.area?.band, hull?.singlesArea?.band].filter((band) => band !== undefined),
  ];
  if (range === undefined || ends.every(({ low, high }) => low >= range.low && high <= range.high)) return [];
  return [
    `${qualityOf(measures)} lies in ${range.low} … ${range.high} (--quality-range): estimates are cut there\n`,
  ];
}

const plainPanel = (verdict: PanelResult) =>
  verdict.kind === "refused" ? verdict : { ...verdict, rows: verdict.rows.map(plainRow) };

const plain = ({ estimate, standardError, intervals }: Valued) => ({
  estimator: estimate.name,
  value: estimate.value,
  standardError,
  intervals,
});

function plainRow({ estimate, ...rest }: Valued & { readonly lambda?: number; readonly caveat?: string }) {
  return { estimator: estimate.name, value: estimate.value, ...rest };
}

function mapped<Key extends string, From, To>(
  of: Partial<Readonly<Record<Key, From>>>,
  to: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(of).map(([key, value]) => [key, to(value as From)]));
}

const figure = (value: number) => String(Number(value.toPrecision(4)));
const percent = (share: number) => `${figure(100 * share)} %`;
