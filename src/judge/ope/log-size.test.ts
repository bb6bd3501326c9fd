import { expect, test } from "vitest";
import { judgeShareOf, smallLogRemedy } from "./log-size.ts";
import { explainFaults, type SupportFault } from "./support.ts";

test("the figure of a small log is 1000, and grows only where the log shows that this is too few", () => {
  for (const judging of [null, 12, 399])
    expect(smallLogRemedy({ judging })).toMatch(/^Record about 1000 different/);
  // 2 610 units to judge are two fifths of the log: 6 525, rounded up to two digits.
  expect(smallLogRemedy({ judging: 2610 })).toMatch(/^Record about 6600 different/);
});

test("a log whose floor is calibrated needs twice as many tasks: a fifth of it judges", () => {
  const shares = [0.6, 0.2, 0.2] as const;
  const [plain, calibrated] = [false, true].map((isCalibrated) => judgeShareOf(shares, { isCalibrated }));
  expect([plain, calibrated]).toEqual([0.4, 0.2]);
  expect(smallLogRemedy({ judging: 2610, judgeShare: calibrated })).toMatch(/^Record about 14000 different/);
  // Of 1000 units 200 judge, and 300 are needed: 1000 units of the same kind are not enough.
  const fault: SupportFault = {
    ...{ kind: "thin-support", effectiveSize: 25, units: 150, needed: 50, enough: 300 },
  };
  expect(explainFaults([fault], { judgeShare: plain })[0]).toMatch(/^the log is too small/);
  expect(explainFaults([fault], { judgeShare: calibrated })[0]).toMatch(
    /^effective sample size 25\.0 of 150 .* Record about 1500 different/,
  );
});

test("a log that nothing is trained from needs as many tasks as judge", () => {
  expect(smallLogRemedy({ judgeShare: 1, counted: { rows: 6, units: 5 } })).toBe(
    "Record about 200 different tasks. Several rows of one task count once, unless rows are split by decision (`train` and `data check`: --unit decision; a loop: `split: { unit: decision }`)",
  );
  // Advice about rows of one task has no use where every task has one row.
  expect(smallLogRemedy({ judgeShare: 1, counted: { rows: 5, units: 5 } })).toBe(
    "Record about 200 different tasks",
  );
  expect(smallLogRemedy({ judging: 2610, judgeShare: 1 })).toBe("Record about 2700 different tasks");
});

test("the advice names the unit that is counted", () => {
  const counted = { rows: 6, units: 5 };
  expect(smallLogRemedy({ unit: "decision", counted })).toBe(
    "Record about 1000 decisions to train a router and judge it. Several decisions of one rollout count once",
  );
  expect(smallLogRemedy({ unit: "session", judgeShare: 1, counted })).toBe(
    "Record about 200 different sessions. Several rows of one session count once",
  );
  const fault: SupportFault = {
    ...{ kind: "thin-support", effectiveSize: 25, units: 30, needed: 50, enough: 60 },
  };
  expect(explainFaults([fault], { unit: "decision" })[0]).toMatch(/Record about 1000 decisions to train/);
});

test("a split without a judge part says nothing of the log that judges", () => {
  expect(judgeShareOf([1, 0, 0], { isCalibrated: false })).toBe(0.4);
});
