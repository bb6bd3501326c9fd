/** Prompts for verl's RLHFDataset: one row for each task, as Parquet. The label is the ground truth. The payload of the
 *  agent is JSON text in `extra_info`, because payloads of two tasks have no common columns. */
import { RollbookError } from "../../base/index.ts";
import { byTask, promptMessages, type RolloutPart, type TrainerFormat } from "../handover/index.ts";
import { field, I64, list, orNull, struct, TEXT } from "../parquet/index.ts";

interface VerlPrompt {
  readonly data_source: string;
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
  readonly ability: string;
  readonly reward_model: { readonly style: "rule"; readonly ground_truth: string };
  readonly extra_info: {
    readonly split: string;
    readonly index: bigint;
    readonly task_id: string;
    readonly task: string | null;
    readonly batch: string | null;
    readonly payload: string | null;
  };
}

const CARRIED: readonly RolloutPart[] = ["environment", "task.label", "task.payload"];
const MESSAGES = list(struct({ role: TEXT, content: TEXT }));

export const verlPrompts: TrainerFormat<VerlPrompt> = {
  from: "rollouts",
  together: "task",
  carried: CARRIED,
  columns: [
    field("data_source", TEXT),
    field("prompt", MESSAGES),
    field("ability", TEXT),
    field("reward_model", struct({ style: TEXT, ground_truth: TEXT })),
    field(
      "extra_info",
      struct({
        ...{ split: TEXT, index: I64, task_id: TEXT },
        ...{ task: orNull(TEXT), batch: orNull(TEXT), payload: orNull(TEXT) },
      }),
    ),
  ],
  async *rows(rollouts, { batch, losses }) {
    let index = 0n;
    for await (const { rollout, taskId, isFirst } of byTask(rollouts)) {
      losses.addParts(rollout, CARRIED);
      if (!isFirst) continue;
      const { task, record } = rollout;
      const messages = promptMessages(rollout);
      if (messages === undefined)
        throw new RollbookError(
          "no-prompt",
          { task: taskId },
          `task ${taskId} has no prompt: neither its record nor a call of its rollouts tells it. Launch it from a row with a prompt, or assemble a batch without its rollouts (\`rollbook batch assemble --exclude\`) and give --batch.`,
        );
      if (messages.some(({ tool_calls }) => tool_calls !== undefined)) losses.add("tool calls in the prompt");
      yield {
        data_source: record.environment,
        prompt: messages.map(({ role, content }) => ({ role, content: content ?? "" })),
        ability: record.environment.split("@")[0]!,
        reward_model: { style: "rule", ground_truth: textOf(task.label) },
        extra_info: {
          ...{ split: "train", index: index++, task_id: taskId },
          ...{ task: task.digest ?? null, batch: batch?.digest ?? null },
          payload: task.payload === undefined ? null : JSON.stringify(task.payload),
        },
      };
    }
  },
};

/** verl's rewards take text. A task without a label gets the empty text. */
function textOf(label: unknown): string {
  return label === undefined ? "" : typeof label === "string" ? label : JSON.stringify(label);
}
