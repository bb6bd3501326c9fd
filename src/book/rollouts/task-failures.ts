/** Finds why a task is quarantined: the rollouts whose failure was the fault of the task. In: a rollout. Out: their ids.
 *  Admission leaves out all other rollouts of the task. */
import { outsideBaseline, RolloutContent } from "../../contract/index.ts";
import { taskKey } from "../../keep/admit/index.ts";
import { readRecord } from "../../store/index.ts";
import type { BookIndex, IndexedRecord, OpenBook } from "../open/index.ts";

/** Sorted by id; empty if the rollout is left out because of its own ending. */
export async function taskFailures(book: OpenBook, content: RolloutContent): Promise<string[]> {
  if (outsideBaseline(content.ending) !== undefined) return [];
  const failed: string[] = [];
  for (const { digest, id } of failuresLike(await book.index(), content)) {
    const other = await readRecord(book.store, RolloutContent, digest);
    if (taskKey(other) === taskKey(content)) failed.push(id!);
  }
  return failed;
}

/** The facts of a record lack the digest of the task, so some of these may be of another task. */
function failuresLike(index: BookIndex, { task, environment }: RolloutContent): IndexedRecord[] {
  return ofTask(index, task).filter(
    ({ fields }) =>
      fields.ending === "failed-task" && fields.task === task.id && fields.environment === environment,
  );
}

/** A catalog finds the rollouts that name the digest of the task. Otherwise all rollouts of the book are listed. */
function ofTask(index: BookIndex, { digest }: RolloutContent["task"]): IndexedRecord[] {
  const ids = digest === undefined ? [] : index.rolloutsWith(digest);
  if (ids.length === 0) return index.ofKind(RolloutContent.kind);
  return index.recordsWith(index.digestsOf(RolloutContent.kind, ids).map((each) => each.digest));
}
