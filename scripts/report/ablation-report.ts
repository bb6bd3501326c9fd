/** The block of a technical report about an ablation: one table, a row for each reward, dataset size and floor, a
 *  column for each arm. Pure: the same result gives the same text. */
import { thousands } from "../../src/base/index.ts";
import type { AblationResult, AblationRow } from "../../src/judge/bench/index.ts";
import { markdownTable, percentText } from "./markdown.ts";

export function ablationText(result: AblationResult): string {
  const { rows, varied, repetitions, tasks } = result;
  const table = rows.filter(({ arm }) => arm.learner === "table");
  const learners = [...new Set(rows.flatMap(({ arm }) => (arm.learner === "table" ? [] : [arm.learner])))];
  const cells = table.flatMap((base) =>
    varied.floors.map((floor) => [
      ...[rewardText(base), thousands(base.decisions), String(floor), percentText(base.arm.gapClosed)],
      ...learners.map((learner) => shareText(rows, { base, learner, floor })),
    ]),
  );
  return [
    `Table 4. Share of the gap from the best single model to the optimum that each arm closes: reward terms × dataset size ×`,
    `confidence floor × learner, ${repetitions} training logs each, ${tasks.heldOut} held-out tasks. Both ends of the gap are those of the reward in the`,
    "row. Bold: the whole interval of the difference to the fitted table lies above 0.\n",
    markdownTable(
      ["reward", "decisions", "floor", "`table`", ...learners.map((each) => `\`${each}\``)],
      cells,
    ),
  ].join("\n");
}

/** The terms of the reward, with the factors on their weights. */
function rewardText({ costWeight, latencyWeight }: AblationRow): string {
  const term = (factor: number, name: string) =>
    factor === 0 ? "" : ` − ${factor === 1 ? "" : `${factor} `}${name}`;
  return `quality${term(costWeight, "cost")}${term(latencyWeight, "latency")}`;
}

function shareText(
  rows: readonly AblationRow[],
  { base, learner, floor }: { base: AblationRow; learner: string; floor: number },
): string {
  const own = rows.find(
    ({ decisions, costWeight, latencyWeight, arm }) =>
      decisions === base.decisions &&
      costWeight === base.costWeight &&
      latencyWeight === base.latencyWeight &&
      arm.learner === learner &&
      arm.floor === floor,
  )!;
  const share = percentText(own.arm.gapClosed);
  return own.arm.versus.low > 0 ? `**${share}**` : share;
}
