/** slime's prompt rows: one JSON object per line, `{prompt, label, metadata}`. The metadata object is the agent's
 *  payload, verbatim. The provenance is beside it, where slime ignores it. One row for each task. */
import { type Digest, type Json, RollbookError } from "../../base/index.ts";
import type { ChatMessage } from "../chat/index.ts";
import { byTask, promptOf, type RolloutPart, type TrainerFormat } from "../handover/index.ts";

interface SlimePrompt {
  readonly prompt: string | readonly ChatMessage[];
  readonly label?: string;
  readonly metadata: Readonly<Record<string, Json>>;
  readonly rollbook: { readonly task: string; readonly digest: Digest | null; readonly batch: Digest | null };
}

const CARRIED: readonly RolloutPart[] = ["task.label", "task.payload"];

export const slimePrompts: TrainerFormat<SlimePrompt> = {
  from: "rollouts",
  together: "task",
  carried: CARRIED,
  async *rows(rollouts, context) {
    const unrecorded: string[] = [];
    for await (const { rollout, taskId, isFirst } of byTask(rollouts)) {
      context.losses.addParts(rollout, CARRIED);
      if (!isFirst) continue;
      const { task } = rollout;
      const prompt = promptOf(rollout);
      if (prompt === undefined)
        throw new RollbookError(
          "no-prompt",
          { task: taskId },
          `task ${taskId} has no prompt: neither its record nor a call of its rollouts tells it. Launch it from a row with a prompt, or assemble a batch without its rollouts (\`rollbook batch assemble --exclude\`) and give --batch.`,
        );
      if (task.payload === undefined) {
        context.losses.add("task.payload (not recorded)");
        unrecorded.push(taskId);
      }
      yield {
        prompt,
        ...(task.label === undefined ? {} : { label: labelText(task.label) }),
        metadata: task.payload ?? {},
        rollbook: { task: taskId, digest: task.digest ?? null, batch: context.batch?.digest ?? null },
      };
    }
    if (unrecorded.length > 0) context.warn(withoutRecord(unrecorded));
  },
};

/** slime compares labels as text, so other labels become JSON text. */
export function labelText(label: Json): string {
  return typeof label === "string" ? label : JSON.stringify(label);
}

function withoutRecord([first, ...others]: readonly string[]): string {
  const which = others.length === 0 ? `task ${first} has` : `task ${first} and ${others.length} more have`;
  return `${which} no record in the book: metadata is empty. Launch tasks with \`rollbook launch\` to record their payloads.`;
}
