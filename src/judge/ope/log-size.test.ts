import { expect, test } from "vitest";
import { smallLogRemedy } from "./log-size.ts";

test("the figure of a small log is 1000, and grows only where the log shows that this is too few", () => {
  for (const judging of [null, 12, 399]) expect(smallLogRemedy(judging)).toMatch(/^Log about 1000 different/);
  // 2 610 units to judge by are two fifths of the log: 6 525, to two digits.
  expect(smallLogRemedy(2610)).toMatch(/^Log about 6600 different/);
});
