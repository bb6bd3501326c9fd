/** Does things at the end of a turn of the event loop, all that have come up in it together: what sends many replies in a
 *  row is faster than what sends each between two other things. In: what is to be done. Out: it is done, in order. */
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
