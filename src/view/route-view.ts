/** How routing decisions look on a terminal. In: explanations. Out: text. */
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
      const reward = step.reward === null ? "unlabelled" : figure(step.reward);
      const head = `${rollout}.${call} (${step.family})${turn}, reward ${reward}:`;
      return `${printable(head)}\n${lines(step.lines)}`;
    })
    .join("\n");
}

function lines(each: readonly string[]): string {
  return each.map((line) => `  ${printable(line)}\n`).join("");
}
