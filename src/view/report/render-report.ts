/** Renders the report of a run: one HTML page, from facts alone.
 *  In: the facts of a run. Out: HTML. Pure. */
import { plural, short, thousands } from "../../base/index.ts";
import {
  element,
  flowChart,
  frontierChart,
  intervalChart,
  lineageChart,
  type Markup,
  type MarkupElement,
  numberText,
  rewardChart,
} from "../charts/index.ts";
import { reasonText } from "../judge/refusal-text.ts";
import { lossFlow } from "./loss-flow.ts";
import { figureOf, folded, pageOf, paragraph, type ReportColumn, section, tableOf } from "./page.ts";
import type { RunFacts, RunLearner, RunWindow } from "./run-facts.ts";

export function renderReportPage(facts: RunFacts): string {
  const body = [
    element("h1", {}, `Run ${facts.run}`),
    element("p", { class: "lead" }, leadText(facts)),
    keyFigures(facts),
    rewardSection(facts),
    candidateSection(facts),
    frontierSection(facts),
    ledgerSection(facts),
    lineageSection(facts),
    stageSection(facts),
    element("footer", {}, footer(facts)),
  ];
  return pageOf(
    `Run ${facts.run}`,
    body.filter((each) => each !== undefined),
  );
}

const TIMES: readonly string[] = ["never", "once", "twice"];

function leadText(facts: RunFacts): string {
  const { windows, rollouts, models, behaviourValue, servedValue, optimum, gapClosed } = facts;
  const released = windows.filter(({ outcome }) => outcome === "released").length;
  const first = `${plural(windows.length, "window")} collected ${thousands(rollouts)} rollouts with ${plural(models.length, "model")}; the gate let a new policy serve ${TIMES[released] ?? `${released} times`}.`;
  if (behaviourValue === undefined || servedValue === undefined || optimum === undefined) return first;
  const share = gapClosed === undefined ? "" : ` That closes ${percent(gapClosed)} of the gap.`;
  return `${first} The policy that serves at the end is worth ${value(servedValue)}, the first one ${value(behaviourValue)}, the best possible one ${value(optimum)}.${share}`;
}

function keyFigures(facts: RunFacts): MarkupElement {
  const { gapClosed, servedValue, optimum, windows } = facts;
  const refused = windows.reduce(
    (sum, { learners }) => sum + learners.filter(({ passed }) => !passed).length,
    0,
  );
  const [first, last] = [windows[0]?.costUsd, windows.at(-1)?.costUsd];
  const figures: [string, string][] = [
    ["gap closed", gapClosed === undefined ? "unknown" : percent(gapClosed)],
    ["value of what serves", servedValue === undefined ? "unknown" : value(servedValue)],
    ["known optimum", optimum === undefined ? "unknown" : value(optimum)],
    ...(first === undefined || last === undefined || first === 0
      ? []
      : [["cost, last to first", percent(last / first)] as [string, string]]),
    ["policies refused", String(refused)],
  ];
  return element(
    "dl",
    { class: "figures" },
    figures
      .filter(([, text]) => text !== "unknown")
      .map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text))),
  );
}

function rewardSection({ windows, behaviourValue, optimum, costUnit = "USD" }: RunFacts): MarkupElement {
  const level = windows.find(({ reward }) => reward !== undefined)?.reward?.interval.level ?? 0.95;
  const chart = rewardChart({
    windows: windows.map(({ index, reward, servedValue, outcome }) => ({
      ...{ window: index, servedValue, released: outcome === "released" },
      ...(reward === undefined
        ? {}
        : { reward: { mean: reward.mean, low: reward.interval.low, high: reward.interval.high } }),
    })),
    ...{ startValue: behaviourValue, optimum, level },
  });
  return section(
    "Reward by window",
    figureOf(
      chart,
      "Squares: mean reward of the rollouts of a window, with its interval; these rollouts include exploration. Circles: exact expected reward of the policy that serves after the window; a hollow circle is a policy that was kept.",
    ),
    tableOf("Windows; values are exact expected rewards", windows, [
      { title: "window", kind: "number", cell: ({ index }) => String(index) },
      { title: "rollouts", kind: "number", cell: ({ collected }) => thousands(collected) },
      { title: "collected by", cell: ({ collectedBy }) => collectedBy },
      { title: "value", kind: "number", cell: ({ collectedValue }) => value(collectedValue) },
      { title: "observed reward", kind: "number", cell: observed },
      {
        title: `cost, ${costUnit}`,
        kind: "number",
        cell: ({ costUsd }) => (costUsd === undefined ? "—" : costUsd.toPrecision(3)),
      },
      { title: "serves next", cell: ({ serves }) => serves },
      { title: "value", kind: "number", cell: ({ servedValue }) => value(servedValue) },
    ]),
  );
}

function observed({ reward }: RunWindow): string {
  if (reward === undefined) return "—";
  const { mean, interval } = reward;
  return `${value(mean)} ${intervalText(interval)}`;
}

interface Judged extends RunLearner {
  readonly window: number;
  readonly reasons: readonly string[];
}

function judgedOf(windows: readonly RunWindow[]): Judged[] {
  return windows.flatMap(({ index, learners, refusals }) =>
    learners.map((each) => ({
      ...each,
      window: index,
      reasons: refusals.find(({ learner }) => learner === each.name)?.reasons ?? [],
    })),
  );
}

function candidateSection({ windows, optimum, gate }: RunFacts): MarkupElement | undefined {
  const judged = judgedOf(windows);
  if (judged.length === 0) return undefined;
  const known = judged.some(({ exactValue }) => exactValue !== undefined);
  const refused = judged.filter(({ passed, reasons }) => !passed && reasons.length > 0);
  const chart = intervalChart({
    title: "Trained policies at the gate",
    axis: "estimated reward",
    lines: optimum === undefined ? [] : [{ value: optimum, name: "optimum" }],
    rows: judged.map((each) => ({
      ...{ group: `window ${each.window}`, name: each.name },
      ...{ value: each.estimate, low: each.interval?.low, high: each.interval?.high, exact: each.exactValue },
      ...{ good: each.passed, note: gateWord(each) },
    })),
  });
  return section(
    "Policies at the gate",
    paragraph(
      `Each window trains policies and estimates their reward on rollouts they have not learned from. The gate passes a policy if its quality is ${marginText(gate.epsilonQuality)} that of the policy that serves, with a chance of error of at most ${percent(gate.alpha)}. ${costText(gate.epsilonCost)}`,
    ),
    figureOf(
      chart,
      `Dots and lines: estimate from the log alone, with its interval.${known ? " Short vertical strokes: the exact value, which the gate does not know." : ""}`,
    ),
    tableOf<Judged>("Trained policies", judged, [
      { title: "window", kind: "number", cell: ({ window }) => String(window) },
      { title: "learner", cell: ({ name }) => name },
      { title: "policy", cell: ({ revision }) => revision },
      { title: "estimate", kind: "number", cell: estimateText },
      ...(known ? [EXACT] : []),
      { title: "gate", cell: gateCell },
    ]),
    ...(refused.length === 0
      ? []
      : [
          tableOf("Why policies were refused", refused, [
            { title: "window", kind: "number", cell: ({ window }) => String(window) },
            { title: "policy", cell: ({ revision }) => revision },
            {
              title: "reason",
              kind: "wrap",
              cell: ({ reasons }) => reasons.map((each) => reasonText(each)).join(" "),
            },
          ]),
        ]),
  );
}

const EXACT: ReportColumn<RunLearner> = {
  ...{ title: "exact value", kind: "number" },
  cell: ({ exactValue }) => value(exactValue),
};

function marginText(epsilon: number): string {
  return epsilon === 0 ? "not below" : `at most ${epsilon} below`;
}

function costText(epsilon: number | null): string {
  if (epsilon === null) return "It asks nothing of cost: this run sets no limit on it.";
  return `Its cost must ${epsilon === 0 ? "not be above" : `be at most ${epsilon} above`} that of the policy that serves.`;
}

function gateWord({ passed, released }: RunLearner): string {
  return released ? "passed, released" : passed ? "passed" : "refused";
}

function gateCell(judged: RunLearner): Markup {
  const word = gateWord(judged);
  return judged.passed ? word : element("span", { class: "refused" }, word);
}

function estimateText({ estimate, interval }: RunLearner): string {
  if (estimate === undefined) return "—";
  return interval === undefined ? value(estimate) : `${value(estimate)} ${intervalText(interval)}`;
}

function frontierSection({
  costQuality,
  costQualityBasis = "exact",
  costUnit = "USD",
}: RunFacts): MarkupElement | undefined {
  if (costQuality.length < 2) return undefined;
  return section(
    "Cost and quality",
    figureOf(
      frontierChart(costQuality, costUnit),
      `${costQualityBasis === "exact" ? "Exact expectations" : "Estimates from the log"}. Hollow circles: always one model. Dotted line: what drawing one of them at random reaches. A policy above the line earns more than any such mixture of the same cost.`,
    ),
    tableOf(
      "Cost and quality of a rollout",
      [...costQuality].sort((a, b) => a.costUsd - b.costUsd),
      [
        { title: "policy", cell: ({ name }) => name },
        { title: "kind", cell: ({ kind }) => kind },
        { title: `cost, ${costUnit}`, kind: "number", cell: ({ costUsd }) => costUsd.toPrecision(3) },
        { title: "quality", kind: "number", cell: ({ quality }) => value(quality) },
      ],
    ),
  );
}

function ledgerSection(facts: RunFacts): MarkupElement {
  const { considered, admitted, excluded } = facts.ledger;
  const rows = [
    ...admitted.map(({ use, rollouts }) => ({ what: `admitted, ${use}`, rollouts })),
    ...excluded.map(({ reason, rollouts }) => ({ what: `excluded, ${reason}`, rollouts })),
    { what: "considered", rollouts: considered },
  ];
  const lost = excluded.reduce((sum, { rollouts }) => sum + rollouts, 0);
  const said =
    lost === 0
      ? `All ${thousands(considered)} rollouts that the last window considered were admitted.`
      : `${thousands(lost)} of the ${thousands(considered)} rollouts that the last window considered were excluded. Every exclusion has a reason.`;
  return section(
    "Loss ledger",
    paragraph(`${said} A policy is never judged by rollouts it has learned from.`),
    figureOf(flowChart(lossFlow(facts)), "Widths are numbers of rollouts."),
    tableOf("The loss ledger; the rows add up to what was considered", rows, [
      { title: "use or reason", cell: ({ what }) => what },
      { title: "rollouts", kind: "number", cell: ({ rollouts }) => thousands(rollouts) },
    ]),
  );
}

function lineageSection({ lineage }: RunFacts): MarkupElement | undefined {
  const { nodes, edges } = lineage;
  if (nodes.length === 0) return undefined;
  return section(
    "Lineage",
    paragraph(
      "Each box is a sealed record with the beginning of its digest. A line leads from a record to one that was made from it; ",
      element("code", {}, "rollbook verify DIGEST"),
      " follows it to the recorded calls.",
    ),
    figureOf(lineageChart(nodes, edges), "One lane for each window, from top to bottom."),
    folded(
      "The same as a table",
      tableOf("Sealed records", nodes, [
        { title: "window", kind: "number", cell: ({ window }) => String(window) },
        { title: "record", cell: ({ kind }) => kind },
        { title: "name", cell: ({ label }) => label },
        { title: "digest", cell: ({ digest }) => element("code", {}, short(digest as never)) },
      ]),
    ),
  );
}

function stageSection({ stages = [] }: RunFacts): MarkupElement | undefined {
  if (stages.length === 0) return undefined;
  return section(
    "Time",
    tableOf("Wall-clock time of each stage", stages, [
      { title: "window", kind: "number", cell: (each) => (each.window === 0 ? "" : String(each.window)) },
      { title: "stage", cell: ({ stage }) => stage },
      { title: "seconds", kind: "number", cell: ({ ms }) => (ms / 1000).toFixed(1) },
    ]),
  );
}

function footer({ seed, digest, pack }: RunFacts): Markup[] {
  return [
    paragraph(
      `Seed ${seed}. `,
      ...(digest === undefined
        ? []
        : ["The run is committed to by digest ", element("code", {}, digest), ". "]),
      ...(pack === undefined
        ? []
        : [
            "It is sealed in a run pack, ",
            element("code", {}, short(pack.digest as never)),
            pack.verified ? ", which verifies." : ", which does not verify.",
          ]),
    ),
    paragraph("Made by rollbook from sealed records. The file needs no network and runs no script."),
  ];
}

function intervalText({ low, high }: { readonly low: number; readonly high: number }): string {
  return `[${value(low)}, ${value(high)}]`;
}

function value(number: number | undefined): string {
  return number === undefined ? "—" : numberText(number, 3);
}

function percent(share: number): string {
  return `${numberText(100 * share, share < 0.1 || share === 1 ? 0 : 1)} %`;
}
