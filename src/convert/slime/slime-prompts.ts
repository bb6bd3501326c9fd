/** slime's prompt rows: one JSON object a line, `{prompt, label, metadata}`. The metadata object is the agent's payload,
 *  verbatim; provenance stands beside it, where slime ignores it. One row for each task. */
import { type Digest, isObject, type Json, RollbookError } from "../../base/index.ts";
import type { ChatMessage } from "../chat/index.ts";
import {
  byTask,
  type HandoverContext,
  promptOf,
  type RolloutPart,
  type TrainerFormat,
} from "../handover/index.ts";

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
    for await (const { rollout, isFirst } of byTask(rollouts)) {
      context.losses.addParts(rollout, CARRIED);
      if (!isFirst) continue;
      const { task } = rollout;
      const prompt = promptOf(rollout);
      if (prompt === undefined)
        throw new RollbookError(
          "no-prompt",
          { task: task.id },
          `task ${task.id} has no prompt: neither its record nor a call of its rollouts tells it. Launch it from a row with a prompt, or cut a batch without its rollouts (\`rollbook batch assemble --exclude\`) and give --batch.`,
        );
      yield {
        prompt,
        ...(task.label === undefined ? {} : { label: labelText(task.label) }),
        metadata: payloadOf(task.payload, task.id, context),
        rollbook: { task: task.id, digest: task.digest ?? null, batch: context.batch?.digest ?? null },
      };
    }
  },
};

/** slime compares labels as text. */
export function labelText(label: Json): string {
  return typeof label === "string" ? label : JSON.stringify(label);
}

function payloadOf(
  payload: Readonly<Record<string, Json>> | undefined,
  task: string,
  { warn, losses }: HandoverContext,
): Readonly<Record<string, Json>> {
  if (isObject(payload)) return payload;
  losses.add("task.payload (not recorded)");
  warn(
    `task ${task} has no record in the book: its metadata is empty. Launch it with \`rollbook launch\` to record its payload.`,
  );
  return {};
}
