/** Renders an analysis of rewards for a terminal.
 *  In: the report. Out: text. */
import type { RewardDistribution, RewardReport } from "../../judge/index.ts";
import { figure, table } from "../format.ts";

export function renderRewards(report: RewardReport): string {
  const lines = [
    { group: "all", ...report.all },
    ...named("source", report.bySource),
    ...named("candidate", report.byArm),
    ...termLines(report),
  ];
  const number = (title: string, of: (line: RewardDistribution) => number) => ({
    title,
    align: "right" as const,
    cell: (line: RewardDistribution) => figure(of(line)),
  });
  const distributions = table<(typeof lines)[number]>(lines, [
    { title: "GROUP", cell: (line: { group: string }) => line.group },
    number("ROWS", (line) => line.count),
    number("MEAN", (line) => line.mean),
    number("SD", (line) => line.deviation),
    number("MIN", (line) => line.min),
    number("P05", (line) => line.p05),
    number("MEDIAN", (line) => line.median),
    number("P95", (line) => line.p95),
    number("MAX", (line) => line.max),
    number("AT MIN", (line) => line.atMin),
    number("AT MAX", (line) => line.atMax),
  ]);
  const ranking = report.ranking.map(({ arm, value }) => `${arm} ${figure(value)}`).join(" > ");
  const weights = table(report.weights, [
    { title: "TERM", cell: (each) => each.term },
    { title: "FACTOR", align: "right", cell: (each) => String(each.factor) },
    { title: "ORDER", cell: (each) => each.ranking.join(" > ") },
    { title: "", cell: (each) => (each.changed ? "changed" : "") },
  ]);
  const { count, ids } = report.outliers;
  const far =
    count === 0 ? "no outliers" : `${count} outliers: ${ids.join(", ")}${count > ids.length ? ", …" : ""}`;
  return `${distributions}\n${far}\nalways one candidate (${report.values}): ${ranking}\n\nThe order if the weight of one term is multiplied by FACTOR ("changed": not the order above):\n${weights}`;
}

/** A measure recorded beside the reward has no weight. */
function termLines({ byTerm, weights }: RewardReport) {
  const parts = new Set(weights.map(({ term }) => term));
  return Object.entries(byTerm).map(([name, each]) => ({
    group: parts.has(name) ? `term ${name}` : `${name} (not part of the reward)`,
    ...each,
  }));
}

function named(what: string, groups: Readonly<Record<string, RewardDistribution>>) {
  return Object.entries(groups).map(([name, each]) => ({ group: `${what} ${name}`, ...each }));
}
