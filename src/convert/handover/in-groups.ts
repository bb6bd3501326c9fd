/** Iterates over rollouts sorted by task, and marks the first of each task.
 *  In: rollouts. Out: the same rollouts, and groups of adjacent items. */
import { taskOf } from "../../contract/index.ts";
import type { HandedRollout } from "./handed-rollout.ts";

/** Yields one rollout at a time: a row per task needs only the first. A call without a task is a separate task. */
export async function* byTask(
  rollouts: AsyncIterable<HandedRollout>,
): AsyncGenerator<{ readonly rollout: HandedRollout; readonly taskId: string; readonly isFirst: boolean }> {
  let before: string | undefined;
  for await (const rollout of rollouts) {
    const taskId = taskOf(rollout.record);
    yield { rollout, taskId, isFirst: taskId !== before };
    before = taskId;
  }
}

/** Yields lists of adjacent items with the same key. Memory holds the largest group. */
export async function* inGroups<T>(items: AsyncIterable<T>, keyOf: (item: T) => string): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const item of items) {
    if (group.length > 0 && keyOf(group[0]!) !== keyOf(item)) {
      yield group;
      group = [];
    }
    group.push(item);
  }
  if (group.length > 0) yield group;
}
