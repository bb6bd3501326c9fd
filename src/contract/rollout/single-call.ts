/** Calls that belong to no opened rollout. Their sealed rollouts share one task id, which says nothing of the question. */
import { parseId } from "../../base/index.ts";

/** The gateway's own: who opens a rollout may not name its task so. */
export const SINGLE_TASK = parseId("single-call");

/** The task of a rollout as rows are grouped by it. A single call is a task of its own: its rollout stands for it. */
export function taskOf({
  task,
  rolloutId,
}: {
  readonly task: { readonly id: string };
  readonly rolloutId: string;
}): string {
  return task.id === SINGLE_TASK ? rolloutId : task.id;
}
