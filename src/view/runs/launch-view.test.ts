import { expect, test } from "vitest";
import { reportLaunch } from "../../book/collect/launch-report.ts";
import { renderLaunchReport, renderSummary } from "./launch-view.ts";

test("a report of many tasks shows ten and counts the others, without a claim about their rewards", () => {
  const task = (i: number, failed: number) => ({
    ...{ task: `t-${i}`, taskTitle: null, rollouts: 1, judged: 1, passed: 0, failed },
    ...{ passAt1: 0, passAtAll: 0, meanReward: 0.775 },
  });
  const reportOf = (count: number, failed = 0) =>
    renderLaunchReport({
      ...{
        passReward: 1,
        passAt: [],
        reward: null,
        quartiles: null,
        unlabelled: 0,
        outside: 0,
        failures: [],
      },
      tasks: Array.from({ length: count }, (_, i) => task(i, failed)),
    });
  expect(reportOf(20)).toMatch(/t-9 .*\nand 10 more tasks: --json lists all\n$/);
  expect(reportOf(11)).toContain("and 1 more task: ");
  expect(reportOf(10)).not.toContain("more");
  // The table of failures tells it all.
  expect(reportOf(20, 1)).toBe("20 tasks\n");
});

test("a summary states what runs that are no results have spent, apart from the results", () => {
  const progress = {
    ...{ total: 2, done: 2, earlier: 0, dead: 0, failed: {}, blamed: 0, commonFailure: null, truncated: 0 },
    ...{ tokens: 28, costUsd: 0.5, unpriced: 0, meanReward: 1, perSecond: 1, etaMs: 0 },
  };
  const none = { runs: 0, tokens: 0, costUsd: 0, unpriced: 0 };
  const first = "2 of 2 rollouts sealed, mean reward 1, 28 tokens, $0.5\n";
  expect(renderSummary({ ...progress, givenUp: none })).toBe(first);
  expect(renderSummary({ ...progress, givenUp: { ...none, runs: 3, tokens: 14, costUsd: 0.25 } })).toBe(
    `${first}3 earlier attempts of these rollouts failed or ended early; not counted above: 14 tokens, $0.25\n`,
  );
  const unknown = { ...progress, unpriced: 2, givenUp: { ...none, runs: 1, unpriced: 1 } };
  expect(renderSummary(unknown)).toBe(
    `${first.replace("$0.5", "at least $0.5 (2 calls without a price)")}1 earlier attempt of these rollouts failed or ended early; not counted above: cost unknown (1 call without a price)\n`,
  );
});

test("a report says that its interval was made wider only if it was", () => {
  const reportOf = (tasks: number) =>
    renderLaunchReport(
      reportLaunch(
        Array.from({ length: tasks }, (_, i) => ({
          ...{ task: `t-${i}`, taskTitle: null, group: `g-${i}`, sample: 0, results: 1 },
          ...{ reward: i % 2, ending: { kind: "terminal" } },
        })),
      ),
    );
  expect(reportOf(1000)).toMatch(/, 95 % interval \S+ to \S+ over 1 000 tasks \(Student-t\)$/m);
  expect(reportOf(6)).toMatch(
    / over 6 tasks \(Student-t, made wider for rare rewards that these tasks may not show\)$/m,
  );
});
