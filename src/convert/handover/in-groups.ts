/** Walks over rollouts that come one task after the other, and marks the first of each task. In: rollouts. Out: the same, and
 *  groups of neighbours. */
import type { HandedRollout } from "./handed-rollout.ts";

/** One rollout at a time: a row for each task needs the first alone. */
export async function* byTask(
  rollouts: AsyncIterable<HandedRollout>,
): AsyncGenerator<{ readonly rollout: HandedRollout; readonly isFirst: boolean }> {
  let task: string | undefined;
  for await (const rollout of rollouts) {
    yield { rollout, isFirst: rollout.task.id !== task };
    task = rollout.task.id;
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
