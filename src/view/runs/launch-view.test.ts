import { expect, test } from "vitest";
import { renderReport } from "./launch-view.ts";

test("a report of many tasks shows ten and counts the others, without a claim about their rewards", () => {
  const task = (i: number) => ({
    ...{ task: `t-${i}`, taskTitle: null, rollouts: 1, judged: 1, passed: 0, failed: 0 },
    ...{ passAt1: 0, passAtAll: 0, meanReward: 0.775 },
  });
  const reportOf = (count: number) =>
    renderReport({
      ...{
        passReward: 1,
        passAt: [],
        reward: null,
        quartiles: null,
        unlabelled: 0,
        outside: 0,
        failures: [],
      },
      tasks: Array.from({ length: count }, (_, i) => task(i)),
    });
  expect(reportOf(20)).toMatch(/t-9 .*\nand 10 more tasks: --json lists all\n$/);
  expect(reportOf(11)).toContain("and 1 more task: ");
  expect(reportOf(10)).not.toContain("more");
});
