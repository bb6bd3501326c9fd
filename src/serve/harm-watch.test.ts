import { describe, expect, test } from "vitest";
import { rngFrom } from "../base/rng.ts";
import { type HarmRule, HarmWatch, type RoutedOutcome } from "./harm-watch.ts";

const RULE: HarmRule = { alpha: 0.05, margin: 0, range: { low: 0, high: 1 }, comparedWith: "record" };

/** Stream of outcomes that are 1 with the given probability, else 0. */
function stream(
  name: string,
  { mean, count, seed, from = 0 }: { mean: number; count: number; seed: number; from?: number },
): RoutedOutcome[] {
  const rng = rngFrom(seed).split(name);
  return Array.from({ length: count }, (_, i) => ({
    ...{ id: `${name}-${i}`, atMs: from + i, reward: rng.float() < mean ? 1 : 0 },
  }));
}

function look(
  rule: HarmRule,
  outcomes: { fresh: readonly RoutedOutcome[]; before: readonly RoutedOutcome[] },
) {
  const watch = new HarmWatch(rule);
  expect(watch.offer(outcomes)).toBe(watch.evidence().harm);
  return watch.evidence();
}

describe("harm", () => {
  test("is found where there is, at any look, and is not claimed of equal streams", () => {
    const before = stream("before", { mean: 0.6, count: 2000, seed: 1 });
    const worse = stream("fresh", { mean: 0.5, count: 2000, seed: 1, from: 5000 });
    const equal = stream("fresh", { mean: 0.6, count: 2000, seed: 1, from: 5000 });
    const found = look(RULE, { fresh: worse, before });
    expect(found).toMatchObject({ harm: true });
    expect(found.upper).toBeLessThan(0);
    expect(found.terms).toHaveLength(found.pairs);
    expect(found.difference).toBeCloseTo(found.fresh - found.before, 12);
    expect(look(RULE, { fresh: equal, before })).toMatchObject({ harm: false, pairs: 2000 });
  });

  test("is not claimed of a loss within the margin", () => {
    const before = stream("before", { mean: 0.6, count: 2000, seed: 3 });
    const worse = stream("fresh", { mean: 0.5, count: 2000, seed: 3, from: 5000 });
    const rule = { ...RULE, margin: 0.3 };
    expect(look(rule, { fresh: worse, before }).harm).toBe(false);
  });

  test("is the same whether outcomes come at once or one by one, and again and again", () => {
    const before = stream("before", { mean: 0.7, count: 1500, seed: 5 });
    const fresh = stream("fresh", { mean: 0.55, count: 1500, seed: 5, from: 5000 });
    const once = look(RULE, { fresh, before });
    const watch = new HarmWatch(RULE);
    for (let i = 1; i <= fresh.length; i++) watch.offer({ fresh: fresh.slice(0, i), before });
    expect(watch.evidence()).toEqual({ ...once, waiting: watch.evidence().waiting });
    expect(once.harm).toBe(true);
  });
});

describe("pairs", () => {
  const at = (id: string, atMs: number, reward = 1): RoutedOutcome => ({ id, atMs, reward });

  test("take the newest of the record first, each once, and wait where it is used up", () => {
    const { ids, waiting } = look(RULE, {
      fresh: [at("n1", 11), at("n2", 12), at("n3", 13)],
      before: [at("o1", 1), at("o2", 2)],
    });
    expect(ids).toEqual([
      ["n1", "o2"],
      ["n2", "o1"],
    ]);
    expect(waiting).toBe(1);
  });

  test("leave out a label that came after its turn", () => {
    const watch = new HarmWatch({ ...RULE, comparedWith: "holdback" });
    watch.offer({ fresh: [at("n2", 12)], before: [at("o2", 12)] });
    watch.offer({
      fresh: [at("n1", 11), at("n2", 12), at("n3", 13)],
      before: [at("o1", 11), at("o2", 12), at("o3", 13)],
    });
    expect(watch.evidence().ids).toEqual([
      ["n2", "o2"],
      ["n3", "o3"],
    ]);
  });

  test("count an outcome outside the range as its nearest end", () => {
    const { terms, clipped } = look(RULE, {
      fresh: [at("n", 2, 7)],
      before: [at("o", 1, -1)],
    });
    expect([...terms]).toEqual([1]);
    expect(clipped).toBe(2);
  });
});

test("an alpha that promises nothing is refused", () => {
  expect(() => new HarmWatch({ ...RULE, alpha: 0.5 })).toThrow(/alpha 0.5/);
});
