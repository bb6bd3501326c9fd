/** Runs tasks together at the end of a turn of the event loop. Sending many replies in a row is faster than sending
 *  each between other work. In: tasks. Out: the tasks have run, in order. */
import { forAll } from "../../../base/index.ts";

export class TurnEnd {
  #waiting: (() => void)[] = [];

  do(task: () => void): void {
    if (this.#waiting.push(task) > 1) return;
    setImmediate(() => {
      const tasks = this.#waiting;
      this.#waiting = [];
      forAll(tasks, (each) => each());
    });
  }
}
