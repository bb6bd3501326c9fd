/** Time as an argument: code that needs the time takes a Clock, so tests and replays control the time. Times in text
 *  mean the same on every machine. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
}

export const systemClock: Clock = { nowMs: () => Date.now() };

/** A clock that moves only by `advance`. */
export function manualClock(startMs = 0): Clock & { advance(byMs: number): void } {
  let now = startMs;
  return {
    nowMs: () => now,
    advance(byMs) {
      now += byMs;
    },
  };
}

/** A time read from text. `assumed`: the text has a time of day without an offset, and was read as UTC. */
export interface ParsedTime {
  readonly atMs: number;
  readonly offset: "stated" | "assumed";
}

/** Reads ISO 8601 with a T or a space: a date (midnight UTC), or a date and a time of day. Returns undefined for other
 *  text: 01/05/2026 can mean January or May. Returns undefined for an impossible date as well; `Date.parse` would move
 *  it to the next month. */
export function parseTime(text: string): ParsedTime | undefined {
  const [, date, time, offset] = ISO_TIME.exec(text) ?? [];
  if (date === undefined) return undefined;
  const midnight = Date.parse(`${date}T00:00:00Z`);
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(date)) return undefined;
  if (time === undefined) return { atMs: midnight, offset: "stated" };
  const zone = offset === undefined || /UTC$/.test(offset) ? "Z" : offset.replace(/(\d\d)(\d\d)$/, "$1:$2");
  const atMs = Date.parse(`${date}T${time}${zone}`);
  return Number.isNaN(atMs) ? undefined : { atMs, offset: offset === undefined ? "assumed" : "stated" };
}

const ISO_TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(Z|[+-]\d\d:?\d\d| ?UTC)?)?$/;
