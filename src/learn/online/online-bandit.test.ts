import { expect, test } from "vitest";
import { makeSkipGrams } from "../../../bench/support/judge/skip-grams.ts";
import { rngFrom } from "../../base/rng.ts";
import type { SparseVector } from "../../policy/features.ts";
import { makeOnlineBandit } from "./online-bandit.ts";

/** Two contexts, three actions; the best action of each pays 0.9 and 0.8, the others less. */
const PAYS = [
  [0.9, 0.2, 0.5],
  [0.1, 0.8, 0.4],
];
const CONTEXTS = PAYS.map(
  (_, at): SparseVector => ({ indices: Int32Array.of(0, 1 + at), values: Float64Array.of(1, 1), count: 2 }),
);
const DECISIONS = 6000;

/** The means of the terms, and the true reward of the choices. */
function learn(kind: "ips" | "dm" | "dr", seed: number) {
  const rng = rngFrom(seed);
  const bandit = makeOnlineBandit({ actions: 3, kind, rate: 0.5, size: 3, rewards: { low: 0, high: 1 } });
  const sums = { ips: 0, dm: 0, dr: 0, truth: 0 };
  for (let i = 0; i < DECISIONS; i++) {
    const at = rng.below(2);
    const action = rng.float() < 0.5 ? 0 : 1 + rng.below(2);
    const reward = rng.float() < PAYS[at]![action]! ? 1 : 0;
    const terms = bandit.visit(CONTEXTS[at]!, { action, reward, propensity: action === 0 ? 0.5 : 0.25 });
    sums.truth += PAYS[at]![terms.choice]! / DECISIONS;
    for (const name of ["ips", "dm", "dr"] as const) sums[name] += terms[name] / DECISIONS;
  }
  return { ...sums, final: CONTEXTS.map((context) => bandit.choose(context)) };
}

test.each(["ips", "dm", "dr"] as const)("%s finds the best action of every context", (kind) => {
  expect(learn(kind, 1).final).toEqual([0, 1]);
});

test("progressive IPS and DR are right about the policies that were played, and DR is closer", () => {
  const runs = [1, 2, 3, 4, 5, 6].map((seed) => learn("dr", seed));
  const rms = (name: "ips" | "dr") =>
    Math.sqrt(runs.reduce((sum, run) => sum + (run[name] - run.truth) ** 2, 0) / 6);
  // The standard error of IPS here is about √(E[r²/p]/n) ≈ 0.02; the standard error of DR is about 0.01.
  expect(rms("ips")).toBeLessThan(0.05);
  expect(rms("dr")).toBeLessThan(0.02);
  expect(rms("dr")).toBeLessThan(rms("ips"));
});

test("a decision that cannot be is refused", () => {
  const bandit = makeOnlineBandit({
    actions: 2,
    kind: "dr",
    rate: 0.5,
    size: 3,
    rewards: { low: 0, high: 1 },
  });
  const visit = (action: number, reward: number, propensity: number) => () =>
    bandit.visit(CONTEXTS[0]!, { action, reward, propensity });
  expect(visit(2, 0, 0.5)).toThrow(/action 2 is not in 0 … 1/);
  expect(visit(0, Number.NaN, 0.5)).toThrow(/reward NaN/);
  expect(visit(0, 0, 0)).toThrow(/propensity 0/);
});

test("skip-grams are the features and the pairs at most `skips` apart", () => {
  const grams = makeSkipGrams({ buckets: 1 << 16, skips: 1 });
  const of = (text: string) => {
    const { indices, count } = grams(text.split(" ").map((word) => [word, 1] as const));
    return [...indices.subarray(0, count)];
  };
  // bias; a, ab, ac; b, bc, bd; c, cd; d
  const whole = of("a b c d");
  expect(whole).toHaveLength(10);
  expect(whole[0]).toBe(0);
  const pair = (first: string, second: string) => of(`${first} ${second}`)[2]!;
  expect(whole).toEqual(expect.arrayContaining([pair("a", "c"), pair("b", "d"), pair("a", "b")]));
  expect(whole).not.toContain(pair("a", "d"));
  expect(pair("b", "a")).not.toBe(pair("a", "b"));
});
