/** Waits for a database that another connection holds. In: work on it. Out: its result. */
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { isBusy } from "./sqlite.ts";

const RETRY_MS = 1;
const GIVE_UP_MS = 30_000;

/** Asks again, without stopping the event loop, for as long as another connection holds what `work` needs: SQLite's own
 *  waiting would stop it. Readers too may meet that: when they come upon what a killed writer left and another is mending
 *  it. `work` begins anew each time. */
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
