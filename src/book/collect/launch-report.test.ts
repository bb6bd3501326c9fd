import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Ending } from "../../contract/index.ts";
import type { LaunchOutcome } from "./launch-outcomes.ts";
import { compareLaunches, passAtK, reportLaunch } from "./launch-report.ts";

const terminal: Ending = { kind: "terminal" };
const failed = (owner: "agent" | "provider", message: string): Ending => ({ kind: "failed", owner, message });

function outcomes(rewards: Record<string, readonly (number | Ending)[]>): LaunchOutcome[] {
  return Object.entries(rewards).flatMap(([task, list]) =>
    list.map((each, sample) => ({
      ...{ task, taskTitle: null, group: `g-${task}`, sample, results: 1 },
      reward: typeof each === "number" ? each : null,
      ending: typeof each === "number" ? terminal : each,
    })),
  );
}

describe("pass@k", () => {
  it("is the share of subsets of k samples in which one passes", () => {
    const sizes = fc
      .integer({ min: 1, max: 7 })
      .chain((n) =>
        fc.record({ n: fc.constant(n), passed: fc.nat({ max: n }), k: fc.integer({ min: 1, max: n }) }),
      );
    fc.assert(
      fc.property(sizes, ({ n, passed, k }) => {
        let subsets = 0;
        let good = 0;
        for (let bits = 0; bits < 1 << n; bits++) {
          if (bits.toString(2).replaceAll("0", "").length !== k) continue;
          subsets++;
          if ((bits & ((1 << passed) - 1)) !== 0) good++;
        }
        expect(passAtK(n, passed, k)).toBeCloseTo(good / subsets, 12);
      }),
    );
  });

  it("and the mean leave out a failure of others, even if it has a reward", () => {
    const [first] = outcomes({ sum: [0] });
    const all = [...outcomes({ sum: [1, 1] }), { ...first!, sample: 2, ending: failed("provider", "down") }];
    const { passAt, reward } = reportLaunch(all);
    expect([passAt[0], reward?.mean]).toEqual([{ k: 1, value: 1 }, 1]);
  });

  it("counts a rollout that a limit cut without a reward as one that did not pass, and not in the mean", () => {
    const cut: Ending = { kind: "truncated", limit: "turns" };
    const { passAt, reward, tasks } = reportLaunch(outcomes({ sum: [1, 1, cut, failed("agent", "died")] }));
    expect(tasks).toMatchObject([{ rollouts: 4, judged: 4, passed: 2, meanReward: 1 }]);
    expect(passAt).toEqual([
      { k: 1, value: 0.5 },
      { k: 4, value: 1 },
    ]);
    expect(reward?.mean).toBe(1);
  });
});

describe("the report of a launch", () => {
  it("counts every task once, agents' failures as not passed, and failures of others apart", () => {
    const report = reportLaunch(
      outcomes({
        easy: [1, 1, 1, 1],
        hard: [0, 1, failed("agent", "line 7: no such tool"), failed("provider", "503")],
      }),
    );
    expect(report.passAt).toEqual([
      { k: 1, value: expect.closeTo(2 / 3, 12) },
      { k: 3, value: 1 },
    ]);
    expect(report.reward).toMatchObject({ mean: 0.75, tasks: 2, level: 0.95 });
    expect(report.quartiles).toEqual([0, 1, 1, 1, 1]);
    expect([report.unlabelled, report.outside]).toEqual([1, 1]);
    expect(report.tasks.map(({ task, judged, passed, failed }) => [task, judged, passed, failed])).toEqual([
      ["hard", 3, 1, 2],
      ["easy", 4, 4, 0],
    ]);
  });

  it("joins failures that differ in numbers alone, most frequent first, by their first message", () => {
    const list = [
      failed("agent", "row 1 is bad\nat x"),
      failed("provider", "row 1 is bad"),
      failed("agent", "row 22 is bad"),
    ];
    expect(reportLaunch(outcomes({ t: list })).failures).toEqual([
      { owner: "agent", message: "row 1 is bad\nat x", count: 2 },
      { owner: "provider", message: "row 1 is bad", count: 1 },
    ]);
  });

  it("has the t interval of the tasks' means where they are many, and a wider one where they are few", () => {
    // t(0.975, 999) = 1.96234; mean 0.5, standard error 0.5/√999.
    const many = reportLaunch(
      outcomes(Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`t${i}`, [i % 2]]))),
    ).reward!;
    expect((many.high! - 0.5) / (1.96234 * 0.5)).toBeCloseTo(1 / Math.sqrt(999), 3);
    expect(many.corrected).toBe(false);
    // t(0.975, 4) = 2.77645; mean 0, standard error √2.5/√5.
    const few = { a: [-2], b: [-1], c: [0], d: [1], e: [2] };
    const { mean, low, high, corrected } = reportLaunch(outcomes(few)).reward!;
    expect([mean, corrected]).toEqual([0, true]);
    expect(low).toBeLessThan(-2.77645 * Math.sqrt(0.5));
    expect(high).toBeGreaterThan(2.77645 * Math.sqrt(0.5));
  });

  it("does not take twenty passes, or twenty failures, for a proof that all pass or fail", () => {
    const twenty = (reward: number) =>
      outcomes(Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`t${i}`, [reward]])));
    // At this level, an outcome that 20 tasks have not shown has a probability of at most ln(40)/20.
    const unseen = Math.log(40) / 20;
    expect(reportLaunch(twenty(1)).reward!.low).toBeCloseTo(1 - unseen, 12);
    expect(reportLaunch(twenty(0)).reward!.high).toBeCloseTo(unseen, 12);
    const same = compareLaunches({ a: twenty(1), b: twenty(1) }).difference!;
    expect([same.low, same.high]).toEqual([expect.closeTo(-unseen, 12), expect.closeTo(unseen, 12)]);
  });

  it("of nothing, or of one task, claims no interval", () => {
    expect(reportLaunch([])).toMatchObject({ passAt: [], reward: null, quartiles: null, tasks: [] });
    expect(reportLaunch(outcomes({ a: [1, 0] })).reward).toMatchObject({
      mean: 0.5,
      low: null,
      high: null,
      corrected: false,
    });
  });

  it("of fewer than five tasks claims no interval, and of rewards from 0 to 1 none beyond them", () => {
    const none = { low: null, high: null };
    expect(reportLaunch(outcomes({ a: [0], b: [1] })).reward).toMatchObject({ mean: 0.5, ...none, tasks: 2 });
    const five = (low: number, high: number) =>
      outcomes({ a: [low], b: [low], c: [high], d: [high], e: [high] });
    expect(reportLaunch(five(0, 1)).reward).toMatchObject({ high: 1 });
    expect(reportLaunch(five(0, 2)).reward!.high).toBeGreaterThan(2);
    const { difference } = compareLaunches({ a: five(1, 0), b: five(0, 1) });
    expect(difference).toMatchObject({ low: -1, high: 1 });
  });
});

describe("the comparison of two launches", () => {
  it("pairs tasks: a shift of every task is found, whatever the tasks' own levels", () => {
    const levels = [0, 10, 20, 30, 40];
    const side = (shift: number) =>
      outcomes(Object.fromEntries(levels.map((level, i) => [`t${i}`, [level + shift * (1 + i / 100)]])));
    const compared = compareLaunches({ a: side(0), b: [...side(1), ...outcomes({ extra: [5] })] });
    expect(compared.difference!.mean).toBeCloseTo(1.02, 12);
    expect(compared.difference!.low).toBeGreaterThan(0.9);
    expect(compared).toMatchObject({ better: 5, worse: 0, equal: 0, onlyA: 0, onlyB: 1 });
  });

  it("counts tasks of both that lack a reward apart from tasks of one alone", () => {
    const a = outcomes({ x: [1], y: [1], z: [1] });
    const b = outcomes({ x: [1], y: [terminal], w: [1] });
    expect(compareLaunches({ a, b })).toMatchObject({ equal: 1, onlyA: 1, onlyB: 1, unrewarded: 1 });
  });

  it("without a task in common says so", () => {
    const compared = compareLaunches({ a: outcomes({ x: [1] }), b: outcomes({ y: [1] }) });
    expect(compared).toMatchObject({ difference: null, onlyA: 1, onlyB: 1, tasks: [] });
  });
});
