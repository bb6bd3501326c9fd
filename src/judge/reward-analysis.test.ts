import { describe, expect, test } from "vitest";
import { analyzeRewards, distributionOf, type RewardedDecision } from "./reward-analysis.ts";

const row = (
  arm: string,
  quality: number,
  cost: number,
  over: Partial<RewardedDecision> = {},
): RewardedDecision => ({
  id: `${arm}-${quality}-${cost}`,
  source: "real",
  arm,
  propensity: 0.5,
  reward: quality - 0.1 * cost,
  terms: { quality: { value: quality, weight: 1 }, cost: { value: cost, weight: -0.1 } },
  ...over,
});

describe("a reward analysis", () => {
  // By hand: large .9 − .5 = .4, small .6 − .1 = .5; without cost large leads, with half the cost .65 : .55.
  const report = analyzeRewards([
    row("large", 0.9, 5),
    row("small", 0.6, 1),
    row("small", 0.6, 1, { source: "synthetic" }),
  ]);

  test("ranks the arms, and says which weights decide the order", () => {
    expect(report.ranking.map(({ arm }) => arm)).toEqual(["small", "large"]);
    const effect = (term: string, factor: number) =>
      report.weights.find((each) => each.term === term && each.factor === factor)!;
    expect(effect("cost", 0)).toMatchObject({ ranking: ["large", "small"], changed: true });
    expect(effect("cost", 0.5).changed).toBe(true);
    expect(effect("cost", 2).changed).toBe(false);
    expect(effect("quality", 0).changed).toBe(false);
  });

  test("splits by source, arm and term", () => {
    expect(Object.fromEntries(Object.entries(report.bySource).map(([k, d]) => [k, d.count]))).toEqual({
      real: 2,
      synthetic: 1,
    });
    expect(report.byArm.large!.mean).toBeCloseTo(0.4, 12);
    expect(report.byTerm.cost!.max).toBe(5);
  });

  test("takes a recorded cost for no term of the reward", () => {
    const priced = (arm: string, reward: number, cost: number) =>
      row(arm, reward, cost, { reward, terms: { cost: { value: cost, weight: 0 } } });
    const found = analyzeRewards([priced("large", 1, 5), priced("small", 0, 1)]);
    expect([Object.keys(found.byTerm), [...new Set(found.weights.map(({ term }) => term))]]).toEqual([
      ["cost", "reward"],
      ["reward"],
    ]);
    // Without the only term, all rewards are 0.
    expect(found.weights.map(({ factor }) => factor)).toEqual([0.5, 2]);
  });

  test("weighs by propensity where every row has one, else says that it does not", () => {
    const rows = [row("a", 1, 0, { propensity: 0.9 }), row("a", 0, 0, { propensity: 0.1 })];
    // (1/.9) / (1/.9 + 1/.1) = .1
    expect(analyzeRewards(rows).ranking[0]!.value).toBeCloseTo(0.1, 12);
    const plain = analyzeRewards([rows[0]!, { ...rows[1]!, propensity: null }]);
    expect(plain).toMatchObject({ values: "plain means", ranking: [{ arm: "a", value: 0.5 }] });
  });

  test("takes the failed tasks of a reward in two heaps for no outliers", () => {
    const heaps = Array.from({ length: 640 }, (_, i) => row("a", (i % 8 === 0 ? 0 : 1) - (i % 7) / 1000, 0));
    expect(analyzeRewards(heaps).outliers).toEqual({ count: 0, ids: [] });
  });

  test("finds outliers and piles at the ends", () => {
    const rows = Array.from({ length: 50 }, (_, i) => row("a", i / 50, 0));
    const found = analyzeRewards([...rows, row("a", 100, 0, { id: "far" })]);
    expect(found.outliers).toEqual({ count: 1, ids: ["far"] });
    expect(distributionOf([-2, -2, 0, 2])).toMatchObject({ atMin: 0.5, atMax: 0.25, median: -1 });
  });

  test("of nothing is refused", () => {
    expect(() => analyzeRewards([])).toThrow("no row has a reward");
  });
});
