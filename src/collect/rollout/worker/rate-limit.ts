/** A token bucket that fills at `perSecond` and holds one second's worth.
 *  In: a clock, a rate. Out: the number of rollouts that may begin now. Does not wait. */
import type { Clock } from "../../../base/index.ts";

interface RateLimit {
  available(): number;
  take(count: number): void;
}

export function makeRateLimit(clock: Clock, perSecond: number | undefined): RateLimit {
  if (perSecond === undefined) return { available: () => Number.POSITIVE_INFINITY, take() {} };
  const most = Math.max(1, perSecond);
  let held = most;
  let last = clock.nowMs();
  return {
    available() {
      const now = clock.nowMs();
      held = Math.min(most, held + (Math.max(0, now - last) / 1000) * perSecond);
      last = now;
      return Math.floor(held);
    },
    take(count) {
      held -= count;
    },
  };
}
