import { describe, expect, it } from "vitest";
import { manualClock, systemClock } from "./clock.ts";

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
