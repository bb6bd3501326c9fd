import { expect, it } from "vitest";
import { workedMs } from "./summarize.ts";

it("the time of a stage begins with the process that ended it, so time between two processes does not count", () => {
  const stage = { fromMs: 1000, toMs: 9000 };
  expect(workedMs(stage, [])).toBe(8000);
  expect(workedMs(stage, [500])).toBe(8000);
  expect(workedMs(stage, [500, 3000, 8000])).toBe(1000);
  // The demo is printed again.
  expect(workedMs(stage, [500, 8000, 20_000])).toBe(1000);
});
