/** Calls that belong to no opened rollout. Their sealed rollouts share one task id, which does not identify the
 *  question. */
import { parseId } from "../../base/index.ts";

/** Reserved for the gateway: clients may not open a rollout with this task. */
export const SINGLE_TASK = parseId("single-call");

/** Grouping key of a rollout by task. A single call is its own task, so its rollout is the key. */
export function taskOf({
  task,
  rolloutId,
}: {
  readonly task: { readonly id: string };
  readonly rolloutId: string;
}): string {
  return task.id === SINGLE_TASK ? rolloutId : task.id;
}
