/** One transaction, and so one fsync, for all operations that wait: a commit starts as soon as the one before it
 *  ends, there is no timer. In: operations as closures. Out: their results, durable.
 *  Operations run in the order they came. One that refuses throws before it writes anything, and alone fails. */
import { isRollbookError } from "../../base/index.ts";

type Commit = <T>(operation: () => T) => Promise<T>;

interface WaitingOperation {
  run(): void;
  settle(): void;
  failed(error: unknown): void;
}

interface CommitOptions {
  /** Does all of the work or nothing. Work that was undone is begun anew, so that in the end it is done once. */
  transaction(work: () => void): Promise<void>;
  /** Grows with every write. */
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
      // Whatever else this turn of the event loop brings joins the group.
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
