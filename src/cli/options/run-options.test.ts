import { describe, expect, it } from "vitest";
import { manualClock } from "../../base/index.ts";
import { LaunchTally } from "../../collect/rollout/index.ts";
import type { Io } from "../io.ts";
import { progressLine } from "./run-options.ts";

describe("progress", () => {
  it("is a line every few seconds where nobody watches, and one line drawn anew where somebody does", () => {
    const told = (live: boolean, total = 1) => {
      const clock = manualClock(0);
      let text = "";
      const io = { live, clock, err: (each: string) => (text += each) } as unknown as Io;
      const line = progressLine(io);
      for (let second = 0; second <= 12; second++) {
        line.onProgress({ ...new LaunchTally(clock).now(), total });
        clock.advance(1000);
      }
      line.end();
      return text;
    };
    expect(told(false).split("\n")).toHaveLength(3);
    expect(told(false)).not.toContain("\u001b");
    expect(told(true)).not.toContain("\n");
    // Nothing is planned, so nothing is printed.
    expect(told(false, 0)).toBe("");
  });
});
