/** The blocks and figures of a technical report, from the result of a benchmark suite.
 *  Pure: the same result, the same text. */
import { plural, short, thousands } from "../../src/base/index.ts";
import type { ArmResult, BenchResult, PairedDifference } from "../../src/judge/bench/index.ts";
import { frontierChart, intervalChart, type MarkupElement, numberText } from "../../src/view/charts/index.ts";
import { markdownTable, percentText } from "./markdown.ts";

interface ReportFigure {
  /** Path below the report's folder. */
  readonly file: string;
  readonly chart: MarkupElement;
}

export function benchFigures(result: BenchResult): ReportFigure[] {
  const [, ...learned] = result.arms;
  const top = bestOf(result);
  return [
    {
      file: "figures/minus-table.svg",
      chart: intervalChart({
        title: "Learned arms minus the fitted table",
        axis: "difference of exact reward",
        lines: [{ value: 0, name: "fitted table" }],
        rows: learned.map((arm) => row(arm.name, arm.versus)),
      }),
    },
    {
      file: "figures/cost-quality.svg",
      chart: frontierChart(
        result.arms.map(({ name, exact }, i) => ({
          ...{ name, costUsd: exact.costUsd, quality: exact.quality },
          kind: i === 0 ? "behaviour" : name === top.name ? "served" : "candidate",
        })),
      ),
    },
    {
      file: "figures/repetitions.svg",
      chart: intervalChart({
        title: `${top.name} minus the fitted table, by training log`,
        axis: "difference of exact reward",
        lines: [{ value: 0, name: "fitted table" }],
        rows: top.byRepetition.map((each, i) => row(`log ${i + 1}`, each)),
      }),
    },
  ];
}

function row(name: string, { mean, low, high }: PairedDifference) {
  const good = low > 0;
  return {
    ...{ name, value: mean, low, high, good },
    note: good ? "above 0" : high < 0 ? "below 0" : "holds 0",
  };
}

/** Blocks by the names of the marks in the report's source. */
export function benchBlocks(result: BenchResult): Readonly<Record<string, string>> {
  return {
    answer: answerText(result),
    setting: settingText(result),
    arms: armsText(result),
    repetitions: repetitionsText(result),
    provenance: provenanceText(result),
  };
}

/** The learned arm with the highest value. */
function bestOf({ arms }: BenchResult): ArmResult {
  return arms.slice(1).reduce((best, arm) => (arm.exact.reward > best.exact.reward ? arm : best));
}

function answerText(result: BenchResult): string {
  const top = bestOf(result);
  const { versus, costVersus, gapClosed, byRepetition } = top;
  const above = byRepetition.filter(({ low }) => low > 0).length;
  const finding =
    versus.low > 0
      ? "Yes"
      : versus.high < 0
        ? "No: the best arm earns less"
        : "Not shown: the interval holds 0";
  const cost = costVersus.high <= 0 ? "lower" : costVersus.low > 0 ? "higher" : "about equal";
  return [
    `${finding}. \`${top.name}\` differs from the fitted table by ${intervalText(versus)} in expected reward`,
    `(${percentText(versus.level)} interval), at ${cost} cost.`,
    `Its own interval lies above 0 in ${above} of ${plural(byRepetition.length, "training log")}.`,
    `It closes ${percentText(gapClosed)} of the gap from the best single model to the known optimum; the table closes`,
    `${percentText(result.arms[0]!.gapClosed)}.`,
  ].join("\n");
}

function settingText({ suite, tasks, decisions, repetitions, seed, known }: BenchResult): string {
  return markdownTable(
    ["setting", "value"],
    [
      ["suite", `\`${suite.name}\``],
      ["training tasks", thousands(tasks.train)],
      ["held-out tasks", thousands(tasks.heldOut)],
      ["decisions in a log", thousands(decisions)],
      ["training logs", String(repetitions)],
      ["seed", String(seed)],
      ["value of the optimum", number(known.best)],
      ["value of the best single model", number(known.bestSingle)],
      ["value of the behaviour", number(known.behaviour)],
      ["value of a uniform choice", number(known.uniform)],
    ],
  );
}

function armsText({ arms }: BenchResult): string {
  const table = markdownTable(
    ["arm", "value", "gap closed", "minus table", "quality", "cost, USD", "latency, ms"],
    arms.map(({ name, exact, gapClosed, versus }, i) => [
      ...[`\`${name}\``, number(exact.reward), percentText(gapClosed), i === 0 ? "" : intervalText(versus)],
      ...[exact.quality.toFixed(3), exact.costUsd.toFixed(5), thousands(Math.round(exact.latencyMs))],
    ]),
  );
  return [
    "Table 1. Exact means over the held-out tasks and all training logs. Values are expected rewards.\n",
    `${table}\n`,
    "![Learned arms minus the fitted table, with intervals](figures/minus-table.svg)\n",
    "Figure 1. Difference of exact reward to the fitted table, with its interval over tasks and training logs.\n",
    "![Cost and quality of every arm](figures/cost-quality.svg)\n",
    "Figure 2. Cost and quality of every arm; the square is the fitted table.",
  ].join("\n");
}

function repetitionsText(result: BenchResult): string {
  const top = bestOf(result);
  const table = markdownTable(
    ["training log", "minus table", "digest of the log"],
    top.byRepetition.map((each, i) => [String(i + 1), intervalText(each), `\`${short(result.logs[i]!)}\``]),
  );
  return [
    `Table 2. \`${top.name}\` minus the fitted table for each training log; the interval is over tasks alone.\n`,
    `${table}\n`,
    "![The best arm minus the fitted table, by training log](figures/repetitions.svg)\n",
    "Figure 3. The same as a figure.",
  ].join("\n");
}

function provenanceText({ suite, world, arms }: BenchResult): string {
  const table = markdownTable(
    ["what", "digest"],
    [
      ["suite", `\`${suite.digest}\``],
      ["tasks, models and reward", `\`${world}\``],
      ...arms
        .slice(1)
        .map(({ name, checkpoints }) => [`first checkpoint of ${name}`, `\`${checkpoints[0]}\``]),
    ],
  );
  return `Table 3. Digests of the inputs and outputs. A pack holds all of these files.\n\n${table}`;
}

function intervalText({ mean, low, high }: PairedDifference): string {
  return `${signed(mean)} [${signed(low)}, ${signed(high)}]`;
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(4)}`;
}

function number(value: number): string {
  return numberText(value, 4);
}
