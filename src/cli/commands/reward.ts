/** `rollbook reward analyze`: what the reward is made of, and whom it favours. */
import type { Command } from "commander";
import { viewDecisions } from "../../book/decisions/source.ts";
import {
  analyzeRewards,
  type Distribution,
  type RewardReport,
  rewardedOf,
} from "../../judge/reward-analysis.ts";
import { figure, jsonLine, table } from "../../view/format.ts";
import { addCommand, addGroup } from "../command.ts";
import type { Io } from "../io.ts";
import { addRowOptions, type RowFlags, requestOf, withDecisions } from "../options/row-options.ts";

export function addReward(program: Command, io: Io): void {
  const reward = addGroup(program, "reward", {
    summary: "look into rewards",
    examples: ["rollbook reward analyze --data routing.jsonl"],
  });
  const command = addCommand(reward, "analyze", {
    summary: "distributions by source, arm and term, outliers, saturation, and what each weight decides",
    description: `Distributions by source, arm and term, outliers, saturation, and how the order of the policies "always this arm"
changes when a term counts not at all, half, or twice. Unlabelled decisions are left out.`,
    examples: ["rollbook reward analyze", "rollbook reward analyze --data routing.jsonl --json"],
  });
  addRowOptions(command, { data: true, families: "all" }).action(
    async (flags: RowFlags & { json?: true }) => {
      const rows = await withDecisions(io, flags, (source) => viewDecisions(source, requestOf(flags)));
      const report = analyzeRewards(rewardedOf(rows));
      io.out(
        flags.json ? jsonLine({ unlabelled: rows.length - report.rows, ...report }) : renderReport(report),
      );
    },
  );
}

function renderReport(report: RewardReport): string {
  const lines = [
    { group: "all", ...report.all },
    ...named("source", report.bySource),
    ...named("arm", report.byArm),
    ...named("term", report.byTerm),
  ];
  const number = (title: string, of: (line: Distribution) => number) => ({
    title,
    align: "right" as const,
    cell: (line: Distribution) => figure(of(line)),
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
    { title: "WEIGHT ×", align: "right", cell: (each) => String(each.factor) },
    { title: "ORDER", cell: (each) => each.ranking.join(" > ") },
    { title: "", cell: (each) => (each.changed ? "changed" : "") },
  ]);
  const { count, ids } = report.outliers;
  const far =
    count === 0 ? "no outliers" : `${count} outliers: ${ids.join(", ")}${count > ids.length ? ", …" : ""}`;
  return `${distributions}\n${far}\nalways one arm (${report.values}): ${ranking}\n\n${weights}`;
}

function named(what: string, groups: Readonly<Record<string, Distribution>>) {
  return Object.entries(groups).map(([name, each]) => ({ group: `${what} ${name}`, ...each }));
}
