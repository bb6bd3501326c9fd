/** Renders results of benchmark suites for people. */
import type {
  AblationResult,
  ArmChange,
  ArmResult,
  BenchResult,
  PairedDifference,
} from "../../judge/bench/index.ts";
import { percent, plural, table, thousands } from "../format.ts";

export function renderBench(result: BenchResult): string {
  const { suite, tasks, decisions, repetitions, known, arms } = result;
  const lines = table(arms, [
    { title: "ARM", cell: ({ name }) => name },
    { title: "VALUE", align: "right", cell: ({ exact }) => exact.reward.toFixed(4) },
    { title: "GAP CLOSED", align: "right", cell: ({ gapClosed }) => percent(gapClosed) },
    { title: "MINUS TABLE", cell: (arm) => (arm === arms[0] ? "—" : interval(arm.versus)) },
    { title: "ABOVE 0", align: "right", cell: (arm) => (arm === arms[0] ? "—" : aboveZero(arm)) },
    { title: "QUALITY", align: "right", cell: ({ exact }) => exact.quality.toFixed(3) },
    { title: "COST, USD", align: "right", cell: ({ exact }) => exact.costUsd.toFixed(5) },
    { title: "LATENCY, MS", align: "right", cell: ({ exact }) => thousands(Math.round(exact.latencyMs)) },
    { title: "PLAYED", align: "right", cell: ({ played }) => played.reward.toFixed(4) },
  ]);
  return [
    `${suite.name}: ${tasks.heldOut} held-out tasks, ${plural(repetitions, "log")} of ${thousands(decisions)} decisions\n\n`,
    lines,
    `\noptimum ${known.best.toFixed(4)}, best single model ${known.bestSingle.toFixed(4)}, `,
    `behaviour ${known.behaviour.toFixed(4)}, uniform choice ${known.uniform.toFixed(4)}\n`,
    `${verdictOf(arms)}\n`,
  ].join("");
}

export function renderChanges(changes: readonly ArmChange[]): string {
  return table(changes, [
    { title: "ARM", cell: ({ name }) => name },
    { title: "BEFORE", align: "right", cell: ({ before }) => before.toFixed(4) },
    { title: "AFTER", align: "right", cell: ({ after }) => after.toFixed(4) },
    { title: "CHANGE", cell: ({ change }) => interval(change) },
  ]);
}

export function renderAblation({ rows }: AblationResult): string {
  return table(rows, [
    { title: "COST ×", align: "right", cell: ({ costWeight }) => String(costWeight) },
    { title: "LATENCY ×", align: "right", cell: ({ latencyWeight }) => String(latencyWeight) },
    { title: "DECISIONS", align: "right", cell: ({ decisions }) => thousands(decisions) },
    { title: "ARM", cell: ({ arm }) => arm.name },
    { title: "FLOOR", align: "right", cell: ({ arm }) => String(arm.floor) },
    { title: "VALUE", align: "right", cell: ({ arm }) => arm.exact.reward.toFixed(4) },
    { title: "GAP CLOSED", align: "right", cell: ({ arm }) => percent(arm.gapClosed) },
    { title: "MINUS TABLE", cell: ({ arm }) => (arm.name === "table" ? "—" : interval(arm.versus)) },
    { title: "COST, USD", align: "right", cell: ({ arm }) => arm.exact.costUsd.toFixed(5) },
    { title: "BEST SINGLE", align: "right", cell: ({ bestSingle }) => bestSingle.toFixed(4) },
    { title: "OPTIMUM", align: "right", cell: ({ best }) => best.toFixed(4) },
  ]);
}

function verdictOf([, ...learned]: readonly ArmResult[]): string {
  const better = learned.filter(({ versus }) => versus.low > 0);
  if (better.length === 0)
    return "no learned arm is better than the fitted table: every interval holds 0 or lies below it";
  const top = better.reduce((best, arm) => (arm.exact.reward > best.exact.reward ? arm : best));
  const cost =
    top.costVersus.high <= 0 ? "cheaper" : top.costVersus.low > 0 ? "more expensive" : "of about equal cost";
  return `${top.name} is better than the fitted table by ${interval(top.versus)}, and ${cost}`;
}

function aboveZero({ byRepetition }: ArmResult): string {
  return `${byRepetition.filter(({ low }) => low > 0).length} of ${byRepetition.length}`;
}

function interval({ mean, low, high }: PairedDifference): string {
  return `${signed(mean)} [${signed(low)}, ${signed(high)}]`;
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(4)}`;
}
