/** Keeps an idle thread for its next user. The code of a new thread is not compiled yet, so its first thousand jobs
 *  run at half the speed. In: an idle thread. Out: the same thread. Holds one thread, and does not keep the process
 *  alive. */
import type { Worker } from "node:worker_threads";

export class KeptThread {
  #held: { readonly thread: Worker; readonly key: string } | undefined;

  /** The thread kept under this key, without listeners. Undefined if there is none. */
  take(key: string): Worker | undefined {
    if (this.#held?.key !== key) return;
    const { thread } = this.#held;
    this.#held = undefined;
    return unheard(thread);
  }

  /** Terminates the thread that was kept before. */
  keep(key: string, thread: Worker): void {
    void this.close();
    this.#held = { key, thread: unheard(thread) };
    const forget = () => {
      if (this.#held?.thread === thread) this.#held = undefined;
    };
    // An idle thread has no work to lose, so its errors need no report.
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
