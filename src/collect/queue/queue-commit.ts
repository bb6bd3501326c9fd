/** Group commit: one transaction, and so one fsync, for all waiting operations. A commit starts as soon as the
 *  previous commit ends; there is no timer. In: operations as closures. Out: their results, durable. Operations run
 *  in the order of their arrival. An operation that refuses throws before it writes anything, and fails alone. */
import { isRollbookError } from "../../base/index.ts";

type Commit = <T>(operation: () => T) => Promise<T>;

interface WaitingOperation {
  run(): void;
  settle(): void;
  failed(error: unknown): void;
}

interface CommitOptions {
  /** Does all of the work or nothing. Work that was rolled back is run again, so it takes effect exactly once. */
  transaction(work: () => void): Promise<void>;
  /** Increases with every write. */
  writes(): number;
  /** Called after a commit that wrote something, before its operations resolve. */
  changed(): void;
}

export function makeCommit({ transaction, writes, changed }: CommitOptions): Commit {
  let waiting: WaitingOperation[] = [];
  let committing = false;

  async function commitAll(): Promise<void> {
    committing = true;
    while (waiting.length > 0) {
      // Operations that arrive in this turn of the event loop join the group.
      await new Promise((next) => setImmediate(next));
      const group = waiting;
      waiting = [];
      try {
        const before = writes();
        await transaction(() => {
          for (const each of group) each.run();
        });
        if (writes() !== before) changed();
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
