import { describe, expect, it } from "vitest";
import { corridorValues, corridorWalks, loggedRow } from "../../test/support/chain-world.ts";
import { refusalOf } from "../../test/support/refusal-of.ts";
import { digestJson } from "../base/digest.ts";
import { type Rng, rngFrom } from "../base/rng.ts";
import type { LoggedRow } from "../learn/index.ts";
import { type DecisionPolicy, parseStaticTable } from "../policy/index.ts";
import { evaluatePolicy, toJudgedRows, totalRewardRows } from "./evaluate/index.ts";
import { type GateRule, gatePolicies } from "./gate.ts";

const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: left", "t");
/** Goes right with this probability in every cell. */
const walker = (right: number) => {
  const policy: DecisionPolicy = {
    family: "test",
    revision: { id: `right-${right}` as never, digest: digestJson("test", right) },
    answer: () => ({ probabilities: [1 - right, right], confidence: 1 }),
  };
  return { policy, table, floor: 0.5, exploration: 0 };
};
const rule: GateRule = {
  ...{ method: "student-t", alpha: 0.05, tried: 1, epsilonQuality: 0, epsilonCost: null },
};
const gate = (rows: readonly LoggedRow[], right: number, change: Partial<GateRule> = {}) =>
  gatePolicies(toJudgedRows(rows, "task").rows, {
    ...{ rng: rngFrom(1), rule: { ...rule, discount: 0.9, ...change } },
    ...{ candidates: [walker(right)], baseline: "behaviour" },
  })[0]!;

/** Every step to the right costs 1, a step to the left 0. Costs add up along the walk. */
const priced = (rows: readonly LoggedRow[]) =>
  rows.map((row) => ({
    ...row,
    candidates: row.candidates.map((one, c) => ({ ...one, features: { price: c } })),
  }));

describe("the gate on chains", () => {
  const walks = corridorWalks(2500);

  it("passes what earns more over an episode, with a bound below the exact gain", () => {
    const judged = gate(walks, 0.75);
    expect(judged).toMatchObject({ outcome: "pass", reasons: [], live: 1 });
    const exact = gainOf(0.75);
    const [check] = judged.checks;
    expect(check!.bound!).toBeLessThan(exact);
    expect(Math.abs(check!.difference - exact)).toBeLessThan(4 * check!.standardError!);
  });

  it("refuses what earns less, though every single decision of the log pays the same for both moves", () => {
    const judged = gate(walks, 0.3);
    expect(judged.outcome).toBe("refuse");
    expect(judged.reasons.join()).toMatch(
      /reward: it may be up to 0\.\d+ worse \(.*; the estimated difference is -0\./,
    );
  });

  it("adds costs up along the chain, and refuses one that grows", () => {
    const judged = gate(priced(walks), 0.75, { epsilonCost: 0 });
    expect(judged.reasons.join()).toMatch(
      /cost: it may be up to [\d.]+ higher \(.*\), and the margin is 0; the estimated difference is \+0\./,
    );
    expect(gate(priced(walks), 0.75, { epsilonCost: 5 }).outcome).toBe("pass");
    const refused = refusalOf(() => gate(walks, 0.75, { epsilonCost: 0 }));
    expect(refused.code).toBe("no-cost");
    expect(refused.message).toMatch(
      /no cost is known of [\d ]+ decisions of \d+, first \S+\. Judge quality alone with --quality-only\./,
    );
  });

  it("judges the total along the chain, quality minus a weight times cost", () => {
    const total = { costWeight: 0.5 };
    const [judged] = gatePolicies(totalRewardRows(toJudgedRows(priced(walks), "task").rows, total), {
      ...{ rng: rngFrom(1), rule: { ...rule, discount: 0.9, total } },
      ...{ candidates: [walker(0.75)], baseline: "behaviour" },
    });
    const [quality, cost] = gate(priced(walks), 0.75, { epsilonCost: 5 }).checks;
    expect(judged!.checks[0]!.difference).toBeCloseTo(quality!.difference - 0.5 * cost!.difference, 1);
  });

  it("takes copies of a walk in one task for one walk: the same bound, the same support", () => {
    const copied = [1, 2].flatMap((copy) =>
      walks.map((row) => ({ ...row, id: `${copy}-${row.id}`, chain: `${copy}-${row.chain}` })),
    );
    const [once, often] = [gate(walks, 0.75), gate(copied, 0.75)];
    const [one, two] = [once.checks[0]!, often.checks[0]!];
    // The model's penalty weighs less on more rows; all else is equal. Twice as many units would cut the error by √2.
    expect(two.standardError! / one.standardError!).toBeCloseTo(1, 2);
    expect(two.bound!).toBeCloseTo(one.bound!, 3);
    expect(often.support.effectiveSize).toBeCloseTo(once.support.effectiveSize, 6);
  });

  it("averages by task: by hand, tasks of one walk and of nine", () => {
    const uneven = inTasks(walks, (walk) => (walk % 10 === 0 ? `long-${walk}` : `${Math.floor(walk / 10)}`));
    const means = unitMeans(uneven);
    expect(gate(uneven, 0.75).checks[0]!.baseline).toBeCloseTo(meanOf(means), 12);
    expect(means).toHaveLength(500);
  });

  it("gives the figures that evaluate gives: tasks of one or of nine episodes, worth 0 … 0.2 and 0.9 … 1.1", () => {
    const rng = rngFrom(7);
    const rows = Array.from({ length: 600 }, (_, task) =>
      Array.from({ length: task % 2 === 0 ? 1 : 9 }, (_each, episode) =>
        [0, 1].map((step) =>
          loggedRow({
            ...{ id: `t${task}-${episode}/0/${step}`, chain: `t${task}-${episode}/0/0`, task: `t${task}` },
            context: { prompt: "", fields: { step } },
            ...{ chosen: rng.below(2), terminal: step === 1 },
            reward: step === 0 ? (task % 2 === 0 ? 0.1 : 1) : 0.2 * rng.float() - 0.1,
          }),
        ),
      ).flat(),
    ).flat();
    const evaluation = evaluatePolicy(toJudgedRows(rows, "task").rows, {
      ...{ setup: walker(0.6), discount: 0.9, rng: rngFrom(1) },
    });
    const [check] = gate(rows, 0.6).checks;
    expect(evaluation).toMatchObject({ rows: 6000, units: 600, chains: { episodes: 3000, horizon: 2 } });
    const logged = evaluation.contenders.find(({ name }) => name === "behaviour")!.values.reward!.estimate;
    expect(logged.value).toBeCloseTo(meanOf(unitMeans(rows)), 12);
    expect(logged.value).toBeCloseTo(0.55, 1);
    expect(check!.baseline).toBe(logged.value);
    const against = evaluation.comparisons.find((each) => each.against === "behaviour")!;
    expect(against.difference.estimate.value).toBe(check!.difference);
  });

  it("bounds the difference as evaluate does where failures are rare: Student-t alone would be narrower", () => {
    const rng = rngFrom(3);
    const rows = Array.from({ length: 400 }, (_, task) =>
      loggedRow({
        ...{ id: `t${task}/0/0`, chain: `t${task}/0/0`, task: `t${task}`, chosen: rng.below(2) },
        context: { prompt: "", fields: {} },
        reward: task < 3 ? 0 : 1,
      }),
    );
    const evaluation = evaluatePolicy(toJudgedRows(rows, "task").rows, {
      ...{ setup: walker(0.6), discount: 0.9, rng: rngFrom(1), level: 0.9 },
    });
    const [check] = gate(rows, 0.6).checks;
    const { difference } = evaluation.comparisons.find((each) => each.against === "behaviour")!;
    expect(difference.intervals[1]).toMatchObject({ corrected: true, low: check!.bound });
    const logged = evaluation.contenders.find(({ name }) => name === "behaviour")!;
    expect(logged.values.reward!.intervals[1]!.corrected).toBe(true);
  });

  it("finds no certainty in rollouts that never failed, though their steps earn different rewards", () => {
    const rng = rngFrom(3);
    // Sums of 0.1, 0.7 and 0.2 in two orders: 1, and 1 minus one bit.
    const never = twoSteps(
      300,
      (first) =>
        [
          [0.1 + 0.7, 0.2],
          [0.1, 0.7 + 0.2],
        ][first]!,
      rng,
    );
    const judged = gate(never, 1, { discount: 1 });
    expect(judged).toMatchObject({ outcome: "refuse", checks: [] });
    expect(judged.reasons.join()).toMatch(/the outcome is always (1|0\.9+) \(600 rows\)/);
    const [behaviour] = evaluatePolicy(toJudgedRows(never, "task").rows, {
      ...{ setup: walker(1), discount: 1, rng: rngFrom(1) },
    }).contenders.filter(({ name }) => name === "behaviour");
    expect(behaviour!.values.reward!.intervals[1]!.low).toBe(Number.NEGATIVE_INFINITY);
  });

  it("takes a stated range for that of a return, and refuses returns outside it", () => {
    const never = twoSteps(300, () => [1, 1], rngFrom(3));
    const stated = { discount: 1, epsilonQuality: 0.01 };
    const judged = gate(never, 1, { ...stated, ranges: { quality: { low: 0, high: 2 } } });
    // An unseen failure of a whole rollout: R·ln 20·(ΣW²/ΣW)/n, with W = |w − 1|: 3 for a quarter of the rollouts, else
    // 1.
    expect(judged.outcome).toBe("refuse");
    expect(judged.checks[0]!.bound!).toBeCloseTo((-2 * Math.log(20) * 2) / 300, 2);
    const wider = gate(never, 1, { ...stated, ranges: { quality: { low: 0, high: 4 } } });
    expect(wider.checks[0]!.bound! / judged.checks[0]!.bound!).toBeCloseTo(2, 2);
    const outside = { ranges: { quality: { low: 0, high: 1 } } };
    const refused = refusalOf(() => gate(never, 1, { ...stated, ...outside }));
    expect(refused.message).toMatch(
      /decision t0\/0\/0 has the reward 2 of its whole rollout, outside the range 0\.\.1\. .*--quality-range/,
    );
    const evaluated = refusalOf(() =>
      evaluatePolicy(toJudgedRows(never, "task").rows, {
        ...{ setup: walker(1), discount: 1, rng: rngFrom(1), ...outside },
      }),
    );
    expect(evaluated.code).toBe("range-broken");
  });

  it("passes no policy that fails rarely, where few rollouts show it", () => {
    // Right twice fails in 2 of 100 rollouts, left twice never; the margin is 0.01. Without unseen failures, 1 of 10
    // passed.
    const rng = rngFrom(11);
    const passed = Array.from({ length: 40 }, () => {
      const rows = twoSteps(
        400,
        (a, b) => [0, rng.float() < (a !== b ? 0.3 : a === 1 ? 0.02 : 0) ? 0 : 1],
        rng,
      );
      const [judged] = gatePolicies(toJudgedRows(rows, "task").rows, {
        ...{ rng: rngFrom(1), rule: { ...rule, discount: 1, epsilonQuality: 0.01 } },
        ...{ candidates: [walker(1)], baseline: { policy: undefined, table, floor: 0.5, exploration: 0 } },
      });
      return judged!.outcome;
    }).filter((outcome) => outcome === "pass");
    expect(passed).toEqual([]);
  });

  it("refuses many walks of few tasks, and counts the tasks", () => {
    const judged = gate(
      inTasks(walks, (walk) => `${walk % 5}`),
      0.75,
    );
    expect(judged).toMatchObject({ outcome: "refuse", checks: [] });
    expect(judged.reasons.join()).toMatch(
      /the candidate: the log is too small\. It has 5 tasks left to judge by, with an effective sample size below 50\. Record about 1000/,
    );
    expect(judged.support.effectiveSize).toBeLessThanOrEqual(5);
  });

  it("refuses a policy that the log does not support, and bounds that chains do not have", () => {
    expect(gate(walks.slice(0, 400), 1).reasons.join()).toMatch(/the log is too small/);
    const refused = refusalOf(() => gate(walks, 0.75, { method: "confidence-sequence" }));
    expect(refused.message).toMatch(/not offered for chains.*student-t/);
  });
});

/** Rollouts of two uniform choices, with the rewards of `rewardsOf`. */
function twoSteps(
  count: number,
  rewardsOf: (first: number, second: number) => readonly number[],
  rng: Rng,
): LoggedRow[] {
  return Array.from({ length: count }, (_, i) => {
    const choices = [rng.below(2), rng.below(2)] as const;
    const rewards = rewardsOf(...choices);
    return choices.map((chosen, step) =>
      loggedRow({
        ...{ id: `t${i}/0/${step}`, chain: `t${i}/0/0`, task: `t${i}`, session: `t${i}`, chosen },
        context: { prompt: "", fields: { step, before: step === 0 ? 2 : choices[0] } },
        ...{ reward: rewards[step]!, terminal: step === 1 },
      }),
    );
  }).flat();
}

function inTasks(rows: readonly LoggedRow[], taskOf: (walk: number) => string): LoggedRow[] {
  return rows.map((row) => ({ ...row, task: taskOf(Number(row.task.slice("walk-".length))) }));
}

/** The mean discounted return of the walks of each task. */
function unitMeans(rows: readonly LoggedRow[]): number[] {
  const tasks = new Map<string, Map<string, number>>();
  for (const { id, chain, task, reward } of rows) {
    const returns = tasks.get(task) ?? new Map<string, number>();
    const step = Number(id.slice(id.lastIndexOf("/") + 1));
    returns.set(chain, (returns.get(chain) ?? 0) + 0.9 ** step * reward!);
    tasks.set(task, returns);
  }
  return [...tasks.values()].map((returns) => meanOf([...returns.values()]));
}

const meanOf = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;

/** The return of a walker minus that of the even walker, from a random cell, in walks cut after 12 steps. */
function gainOf(right: number): number {
  return returnOf(right) - returnOf(0.5);
}

function returnOf(right: number): number {
  const cells = corridorValues(0.9).length;
  let values = new Array<number>(cells).fill(0);
  for (let step = 0; step < 12; step++)
    values = values.map((_, cell) => {
      const onward = cell === cells - 1 ? 1 : 0.9 * values[cell + 1]!;
      const back = cell === 0 ? 0.2 : 0.9 * values[cell - 1]!;
      return right * onward + (1 - right) * back;
    });
  return values.reduce((sum, each) => sum + each, 0) / cells;
}
