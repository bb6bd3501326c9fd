import { afterEach, describe, expect, it, vi } from "vitest";
import { manualClock, parseTime, systemClock } from "./clock.ts";

describe("clocks", () => {
  it("the manual clock stands still until it is advanced", () => {
    const clock = manualClock(1_000);
    expect([clock.nowMs(), clock.nowMs()]).toEqual([1_000, 1_000]);
    clock.advance(250);
    expect(clock.nowMs()).toBe(1_250);
  });

  it("two manual clocks are independent", () => {
    const [first, second] = [manualClock(), manualClock()];
    first.advance(5);
    expect([first.nowMs(), second.nowMs()]).toEqual([5, 0]);
  });

  it("the system clock gives the time of the machine, in milliseconds", () => {
    const before = Date.now();
    const now = systemClock.nowMs();
    expect(now).toBeGreaterThanOrEqual(before);
    expect(now).toBeLessThanOrEqual(Date.now());
  });
});

describe("a time in text", () => {
  afterEach(() => vi.unstubAllEnvs());

  it.each(["UTC", "Asia/Tokyo", "America/Los_Angeles"])(
    "is the same time on a machine in %s, and without an offset it is UTC",
    (zone) => {
      vi.stubEnv("TZ", zone);
      const atMs = Date.UTC(2026, 4, 31, 10, 0, 5);
      for (const text of ["2026-05-31T10:00:05", "2026-05-31 10:00:05.000"])
        expect(parseTime(text), text).toEqual({ atMs, offset: "assumed" });
      for (const text of ["2026-05-31T10:00:05Z", "2026-05-31 10:00:05 UTC", "2026-05-31T12:00:05+0200"])
        expect(parseTime(text), text).toEqual({ atMs, offset: "stated" });
      expect(parseTime("2026-05-31")?.atMs).toBe(Date.UTC(2026, 4, 31));
    },
  );

  it("is not read if no calendar or clock has it, or if its order is a guess", () => {
    for (const text of ["2026-02-30", "2026-02-29T10:00:00Z", "2026-04-31 10:00", "2026-13-01", "2026-00-10"])
      expect(parseTime(text), text).toBeUndefined();
    for (const text of ["2026-05-31T25:00:00Z", "01/05/2026", "yesterday", ""])
      expect(parseTime(text), text).toBeUndefined();
    expect(parseTime("2028-02-29")?.atMs).toBe(Date.UTC(2028, 1, 29));
  });
});
