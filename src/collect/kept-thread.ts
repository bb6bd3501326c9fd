/** A thread that outlives its user, for the next one: the code of a new thread is not compiled yet, and it does its first
 *  thousand pieces of work at half the speed. In: a thread with nothing to do. Out: the same thread. Holds one; it does not keep
 *  the process alive. */
import type { Worker } from "node:worker_threads";

export class KeptThread {
  #held: { readonly thread: Worker; readonly key: string } | undefined;

  /** The thread that is kept under this key, without listeners; undefined if there is none. */
  take(key: string): Worker | undefined {
    if (this.#held?.key !== key) return;
    const { thread } = this.#held;
    this.#held = undefined;
    return unheard(thread);
  }

  /** Ends the one that was kept before. */
  keep(key: string, thread: Worker): void {
    void this.close();
    this.#held = { key, thread: unheard(thread) };
    const forget = () => {
      if (this.#held?.thread === thread) this.#held = undefined;
    };
    // It has no work that could be lost, so an error says nothing to anybody.
    thread.on("error", forget).on("exit", forget).unref();
  }

  async close(): Promise<void> {
    const thread = this.#held?.thread;
    this.#held = undefined;
    await thread?.terminate();
  }
}

function unheard(thread: Worker): Worker {
  for (const event of ["message", "error", "exit"]) thread.removeAllListeners(event);
  return thread;
}
