/** Walks over rollouts that come one task after the other, and marks the first of each task. In: rollouts. Out: the same, and
 *  groups of neighbours. */
import { taskOf } from "../../contract/index.ts";
import type { HandedRollout } from "./handed-rollout.ts";

/** One rollout at a time: a row for each task needs the first alone. A call that was served by itself is a task of its own. */
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

/** Neighbours with the same key, one list at a time: memory holds the largest group. */
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
