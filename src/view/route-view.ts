/** Renders routing decisions for a terminal.
 *  In: explanations. Out: text. */
import type { AskedRouter, ExplainedCall } from "../book/serve/index.ts";
import { figure, printable, table } from "./format.ts";

export function renderAsked({ explanation, candidates }: AskedRouter): string {
  const rows = candidates.map((one) => ({ ...one, mark: one.id === explanation.chosen ? "chosen" : "" }));
  const list = table(rows, [
    { title: "CANDIDATE", cell: ({ id }) => id },
    { title: "PROBABILITY", align: "right", cell: ({ probability }) => figure(probability) },
    { title: "", cell: ({ mark }) => mark },
  ]);
  return `${list}\n${lines(explanation.lines)}`;
}

export function renderExplained({ rollout, call, steps }: ExplainedCall): string {
  return steps
    .map((step, i) => {
      const turn = i === 0 ? "" : `, after ${i === 1 ? "a failure" : `${i} failures`}`;
      const head = `call ${call} of ${rollout} (${step.family})${turn}, ${rewardText(step)}:`;
      return `${printable(head)}\n${lines(step.lines)}`;
    })
    .join("\n");
}

function rewardText({ reward, isRewardedLater }: ExplainedCall["steps"][number]): string {
  if (isRewardedLater) return "the reward is at the rollout's last choice";
  return reward === null ? "unlabelled" : `reward ${figure(reward)}`;
}

function lines(each: readonly string[]): string {
  return each.map((line) => `  ${printable(line)}\n`).join("");
}
