/** `rollbook reward analyze`: what the reward is made of, and whom it favours. */
import type { Command } from "commander";
import { rewardReport } from "../../book/judge/index.ts";
import { jsonLine } from "../../view/format.ts";
import { renderRewards } from "../../view/reward-view.ts";
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
      const report = await withDecisions(io, flags, (source) => rewardReport(source, requestOf(flags)));
      io.out(flags.json ? jsonLine(report) : renderRewards(report));
    },
  );
}
