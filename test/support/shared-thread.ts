/** One sealing thread for all gateways of a process, one after the other. A new thread takes longer to start than most
 *  tests run, because it loads the contracts again. Books must be on disk: a bucket's thread needs its own variables.
 *  Two gateways at a time have a thread each, and one of the threads is kept. */
import type { Worker } from "node:worker_threads";
import { KeptThread } from "../../src/collect/kept-thread.ts";

class SharedThread extends KeptThread {
  override take(): Worker | undefined {
    return super.take("any book on disk");
  }

  override keep(_: string, thread: Worker): void {
    super.keep("any book on disk", thread);
  }
}

export const sharedThread = new SharedThread();
