/** One transaction, and so one fsync, for all operations that wait: a commit starts as soon as the one before it
 *  ends, there is no timer. In: operations as closures. Out: their results, durable.
 *  Operations run in the order they came. One that refuses throws before it writes anything, and alone fails. */
import { isRollbookError } from "../../base/index.ts";
import { type Sqlite, whenFree } from "../../store/index.ts";

type Commit = <T>(operation: () => T) => Promise<T>;

interface WaitingOperation {
  run(): void;
  settle(): void;
  failed(error: unknown): void;
}

/** `changed` is called after a commit that wrote something, before its operations resolve. */
export function makeCommit(db: Sqlite, changed: () => void): Commit {
  const writes = db.prepare("SELECT total_changes() AS count");
  const countWrites = () => writes.get<{ count: number }>()!.count;
  let waiting: WaitingOperation[] = [];
  let committing = false;

  async function commitAll(): Promise<void> {
    committing = true;
    while (waiting.length > 0) {
      // Whatever else this turn of the event loop brings joins the group.
      await new Promise((next) => setImmediate(next));
      const group = waiting;
      waiting = [];
      try {
        const before = countWrites();
        await runGroup(db, group);
        if (countWrites() !== before) changed();
        for (const each of group) each.settle();
      } catch (error) {
        for (const each of group) each.failed(error);
      }
    }
    committing = false;
  }

  return <T>(operation: () => T) =>
    new Promise<T>((done, failed) => {
      let outcome: { value: T } | { refusal: unknown };
      waiting.push({
        run() {
          try {
            outcome = { value: operation() };
          } catch (refusal) {
            if (!isRollbookError(refusal) || isRollbookError(refusal, "sqlite")) throw refusal;
            outcome = { refusal };
          }
        },
        settle: () => ("value" in outcome ? done(outcome.value) : failed(outcome.refusal)),
        failed,
      });
      if (!committing) void commitAll();
    });
}

/** Rolled back if busy, so running the operations again is running them once. */
function runGroup(db: Sqlite, group: readonly WaitingOperation[]): Promise<void> {
  return whenFree(() =>
    db.transaction(() => {
      for (const each of group) each.run();
    }),
  );
}
