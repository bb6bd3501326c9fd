/** A panel as text: diagnostics first, then the reasons of a refusal, or the estimates and their disagreements. */
import { plural } from "../../base/index.ts";
import type { Diagnostics } from "./diagnostics.ts";
import { type Interval, methodText } from "./intervals/index.ts";
import { FALSE_ALARMS, type PanelEstimates, type PanelResult, type PanelRow } from "./panel.ts";

export function panelText(verdict: PanelResult): string {
  const lines = diagnosticLines(verdict.diagnostics);
  switch (verdict.kind) {
    case "refused":
      return [
        ...lines,
        "",
        "REFUSED: no estimate.",
        ...verdict.reasons.map((reason) => `  - ${reason}`),
      ].join("\n");
    case "estimated":
      return [...lines, "", ...estimatedLines(verdict)].join("\n");
    default:
      return verdict satisfies never;
  }
}

/** Lines that are printed before any estimate. */
export function diagnosticLines(d: Diagnostics): string[] {
  const { unsupported } = d;
  const support =
    unsupported.basis === "unknown"
      ? "an unknown share, because only the probabilities of the choices are given"
      : `${(100 * unsupported.mass).toFixed(2)} %${unsupported.actions.length === 0 ? "" : ` (${plural(unsupported.actions.length, "candidate")} ${BASES[unsupported.basis]})`}`;
  return [
    `units ${d.units} (rows ${d.rows}) · effective sample size ${d.effectiveSize.toFixed(1)} · largest importance weight ${number(d.largestWeight)} · heaviest unit ${(100 * d.largestShare).toFixed(1)} % of all weight`,
    `mean importance weight ${d.meanWeight.toFixed(4)} (expected 1; z = ${d.meanWeightZ.toFixed(2)}) · choices of the policy that the log cannot judge: ${support}`,
  ];
}

const BASES = {
  distribution: "logged with probability 0",
  "never-chosen": "never chosen in the log",
} as const;

export function estimatedLines(verdict: PanelEstimates, measure = "reward"): string[] {
  const lines = [
    verdict.certification === "certified"
      ? "certified: propensities were logged"
      : "NOT CERTIFIED: propensities were estimated from the log",
    ...verdict.rows.map(rowText),
    `naive ${number(verdict.naive)}: mean ${measure} where the target agrees with the log; biased, not an estimate of its value`,
  ];
  for (const { left, right, difference } of verdict.disagreements) {
    lines.push(
      `DISAGREEMENT: ${left} − ${right} is in ${span(difference)}, which excludes 0 (by chance in about 1 log of ${1 / FALSE_ALARMS}): the logged probabilities are wrong, or the log rarely has the policy's choices. Trust neither estimate.`,
    );
  }
  for (const bound of verdict.sensitivity ?? []) {
    lines.push(
      `hidden bias up to Γ = ${bound.gamma}: SNIPS ${number(bound.low)} … ${number(bound.high)}, with sampling error ${number(bound.intervalLow)} … ${number(bound.intervalHigh)}`,
    );
  }
  return lines;
}

function rowText({ estimate, standardError, intervals, lambda, caveat }: PanelRow): string {
  const tuning =
    lambda === undefined ? "" : ` (${Number.isFinite(lambda) ? `λ = ${number(lambda)}` : "no cut"})`;
  const spans = told(intervals)
    .map(
      (interval) =>
        `${Number((100 * interval.level).toPrecision(4))} % ${methodText(interval)} ${span(interval)}`,
    )
    .join(" · ");
  return `${estimate.name.padEnd(10)} ${number(estimate.value)} ± ${number(standardError)}${tuning} · ${spans}${caveat === undefined ? "" : ` (${caveat})`}`;
}

/** The bootstrap interval is widened to the one by Student-t. Where it is no wider, only that one is printed. */
function told(intervals: readonly Interval[]): readonly Interval[] {
  const student = intervals.find(({ method }) => method === "student-t");
  return intervals.filter(
    ({ method, low, high }) => method !== "bootstrap" || low !== student?.low || high !== student.high,
  );
}

function span({ low, high }: Interval): string {
  return `[${number(low)}, ${number(high)}]`;
}

function number(value: number): string {
  return value.toPrecision(4);
}
