/** Prompts for TRL's GRPO and RLOO trainers, one for each task. The other columns reach the reward functions. */
import { RollbookError } from "../../base/index.ts";
import { byTask, promptMessages, type RolloutPart, type TrainerFormat } from "../handover/index.ts";
import { type TrlMessage, trlMessages, trlTools } from "./trl-messages.ts";

interface TrlGrpoRow {
  readonly prompt: readonly TrlMessage[];
  readonly tools?: string;
  readonly task_id: string;
  readonly task: string | null;
  readonly batch: string | null;
  /** JSON text, because labels of different tasks may have different types. */
  readonly label: string | null;
  readonly payload: string | null;
}

const CARRIED: readonly RolloutPart[] = ["conversations.tools", "task.label", "task.payload"];

export const trlGrpo: TrainerFormat<TrlGrpoRow> = {
  from: "rollouts",
  together: "task",
  carried: CARRIED,
  async *rows(rollouts, { batch, losses }) {
    for await (const { rollout, taskId, isFirst } of byTask(rollouts)) {
      losses.addParts(rollout, CARRIED);
      if (!isFirst) continue;
      const { task, conversations } = rollout;
      const messages = promptMessages(rollout);
      const prompt = messages === undefined ? undefined : trlMessages(messages);
      if (prompt === undefined)
        throw new RollbookError(
          "no-prompt",
          { task: taskId },
          `task ${taskId} has no prompt that a chat template can render. Launch it from a row with a prompt, or assemble a batch without its rollouts (\`rollbook batch assemble --exclude\`) and give --batch.`,
        );
      yield {
        prompt,
        ...trlTools(conversations[0]?.tools),
        ...{ task_id: taskId, task: task.digest ?? null, batch: batch?.digest ?? null },
        label: task.label === undefined ? null : JSON.stringify(task.label),
        payload: task.payload === undefined ? null : JSON.stringify(task.payload),
      };
    }
  },
};
