/** Renders routing decisions for a terminal.
 *  In: explanations. Out: text. */
import type { AskedRouter, ExplainedCall, ListedRollback } from "../book/serve/index.ts";
import { figure, plural, printable, table, timeText } from "./format.ts";

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

export function renderRollbacks(rollbacks: readonly ListedRollback[]): string {
  return rollbacks
    .map((each) => {
      const { atMs, family, from, to } = each;
      const head = `${timeText(atMs)} UTC, family ${family}: ${routerText(from)} was taken back for ${routerText(to)}`;
      return `${printable(head)}\n${lines(rollbackLines(each))}`;
    })
    .join("\n");
}

/** A router as logs name it, with its policy. */
function routerText({ digest, policy }: ListedRollback["from"]): string {
  const id = `router-${digest.slice(7, 19)}`;
  return policy === undefined ? `${id} (no policy)` : `${id} (policy ${policy.id})`;
}

function rollbackLines({ record, verdict, evidence, state }: ListedRollback): string[] {
  const { pairs, fresh, before, difference, upper, margin, alpha, comparedWith, feedback, clipped } =
    evidence;
  const outcomes = feedback === undefined ? "recorded rewards" : `the feedback ${feedback}`;
  const source =
    comparedWith === "holdback"
      ? "from the rollouts that the router before it kept"
      : "from before the release";
  return [
    `Outcomes: ${outcomes}, ${plural(pairs, "pair")}. Mean ${figure(fresh)}; of the router before it ${figure(before)}, ${source}.`,
    `Difference ${figure(difference)}, upper bound ${figure(upper)}, below ${figure(-margin)} (minus the margin) at alpha ${figure(alpha)}.`,
    ...(clipped === 0
      ? []
      : [
          `${plural(clipped, "outcome")} outside the range ${figure(evidence.range.low)} to ${figure(evidence.range.high)} counted as the nearest end.`,
        ]),
    STATES[state],
    ...(verdict === undefined ? [] : [`Released by the gate verdict ${verdict}.`]),
    `Record: ${record}.`,
  ];
}

const STATES: Readonly<Record<ListedRollback["state"], string>> = {
  holds: "The rollback holds: the router may not serve until a newer verdict releases it.",
  "released-again": "A newer verdict has released the router again.",
  untrusted: "The rollback has no effect: no trusted key signed it.",
};

function rewardText({ reward, isRewardedLater }: ExplainedCall["steps"][number]): string {
  if (isRewardedLater) return "the reward is at the rollout's last choice";
  return reward === null ? "unlabelled" : `reward ${figure(reward)}`;
}

function lines(each: readonly string[]): string {
  return each.map((line) => `  ${printable(line)}\n`).join("");
}
