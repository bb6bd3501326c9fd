/** One transaction, and so one fsync, for all operations that wait: a commit starts as soon as the one before it
 *  ends, there is no timer. In: operations as closures. Out: their results, durable.
 *  Operations run in the order they came. One that refuses throws before it writes anything, and alone fails. */
import { isRollbookError } from "../../base/index.ts";
import { GroupCommit, type Sqlite, whenFree } from "../../store/index.ts";

type Commit = <T>(operation: () => T) => Promise<T>;

/** `changed` is called after a commit that wrote something, before its operations resolve. */
export function makeCommit(db: Sqlite, changed: () => void): Commit {
  const writes = db.prepare("SELECT total_changes() AS count");
  const countWrites = () => writes.get<{ count: number }>()!.count;
  let operations: (() => void)[] = [];
  const commits = new GroupCommit({
    // Whatever else this turn of the event loop brings joins the group.
    gather: (start) => setImmediate(start),
    async commit() {
      const group = operations;
      operations = [];
      const before = countWrites();
      await runGroup(db, group);
      if (countWrites() !== before) changed();
    },
  });
  return <T>(operation: () => T) =>
    new Promise<T>((done, failed) => {
      let outcome: { value: T } | { refusal: unknown };
      operations.push(() => {
        try {
          outcome = { value: operation() };
        } catch (refusal) {
          if (!isRollbookError(refusal) || isRollbookError(refusal, "sqlite")) throw refusal;
          outcome = { refusal };
        }
      });
      commits.add();
      commits.whenDurable({
        durable: () => ("value" in outcome ? done(outcome.value) : failed(outcome.refusal)),
        lost: failed,
      });
    });
}

/** Rolled back if busy, so running the operations again is running them once. */
function runGroup(db: Sqlite, operations: readonly (() => void)[]): Promise<void> {
  return whenFree(() =>
    db.transaction(() => {
      for (const run of operations) run();
    }),
  );
}
