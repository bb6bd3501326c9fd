/** Waits for a database that another connection holds. In: work on the database. Out: the result of the work. */
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { isBusy } from "./sqlite.ts";

const RETRY_MS = 1;
const GIVE_UP_MS = 30_000;

/** Retries `work` while another connection holds a lock that it needs, without blocking the event loop; SQLite's own
 *  wait would block it. Readers can meet such a lock too: another connection may be repairing what a killed writer
 *  left. `work` starts again at each retry. */
export async function whenFree<T>(work: () => T | Promise<T>): Promise<T> {
  const until = performance.now() + GIVE_UP_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error) || performance.now() >= until) throw error;
      await sleep(RETRY_MS);
    }
  }
}
