/** Time as an argument: code that needs the hour takes a Clock, so tests and replays decide what time it is. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
}

export const systemClock: Clock = { nowMs: () => Date.now() };

/** Stands still until told: `advance` moves it. */
export function manualClock(startMs = 0): Clock & { advance(byMs: number): void } {
  let now = startMs;
  return {
    nowMs: () => now,
    advance(byMs) {
      now += byMs;
    },
  };
}
