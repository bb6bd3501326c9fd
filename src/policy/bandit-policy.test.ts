import { describe, expect, test } from "vitest";
import { candidate } from "../../test/support/decision-world.ts";
import type { PolicyModel } from "./checkpoint.ts";
import { DEFAULT_FEATURES } from "./feature-spec.ts";
import { answerOf } from "./load-policy.ts";

const tally = (kind: PolicyModel["kind"], counts: number[], sums: number[], settings = {}): PolicyModel => ({
  kind,
  spec: { ...DEFAULT_FEATURES, wordBuckets: 0 },
  arms: ["a", "b"],
  config: {},
  settings,
  tensors: {
    counts: { shape: [2], data: Float64Array.from(counts) },
    sums: { shape: [2], data: Float64Array.from(sums) },
  },
});
const question = { prompt: "hello", fields: {} };
const ask = (model: PolicyModel, ...ids: string[]) =>
  answerOf(model)(
    question,
    ids.map((id) => candidate(id.replace("!", ""), !id.endsWith("!"))),
  );

describe("UCB1", () => {
  test("tries the untried first, shares ties, and never answers what may not be chosen", () => {
    expect(ask(tally("ucb1", [5, 0], [5, 0]), "a", "b").probabilities).toEqual([0, 1]);
    expect(ask(tally("ucb1", [5, 5], [1, 1]), "a", "b").probabilities).toEqual([0.5, 0.5]);
    expect(ask(tally("ucb1", [5, 5], [1, 4]), "a", "b!").probabilities).toEqual([1, 0]);
    expect(ask(tally("ucb1", [5, 5], [5, 5]), "a", "b", "unseen").probabilities).toEqual([0, 0, 1]);
  });

  test("weighs mean against √(2 ln N / n), as computed by hand", () => {
    // N = 20: a has .5 + √(2 ln 20 / 18) = 1.077, b has .25 + √(2 ln 20 / 2) = 1.981.
    expect(ask(tally("ucb1", [18, 2], [9, 0.5]), "a", "b").probabilities).toEqual([0, 1]);
    expect(ask(tally("ucb1", [18, 2], [9, 0.5], { exploration: 0.1 }), "a", "b").probabilities).toEqual([
      1, 0,
    ]);
  });
});

describe("Thompson sampling", () => {
  test("gives each arm the probability that its posterior is the larger: 5/6 for Beta(2,1) against Beta(1,2)", () => {
    const model = tally("thompson-beta", [1, 1], [1, 0], { draws: 20_000, floor: 0, seed: 3 });
    const answer = ask(model, "a", "b");
    // Four standard errors of a share of 20 000 draws.
    expect(Math.abs(answer.probabilities[0]! - 5 / 6)).toBeLessThan(4 * Math.sqrt(5 / 36 / 20_000));
    expect(answer.monteCarlo).toEqual({ draws: 20_000, floor: 0 });
  });

  test("keeps its floor under every selectable arm, sums to 1, and answers one question one way", () => {
    const model = tally("thompson-beta", [900, 900], [890, 10], { draws: 64, floor: 0.05, seed: 3 });
    const answer = ask(model, "a", "b", "c!");
    expect(answer.probabilities[1]).toBeCloseTo(0.05, 12);
    expect(answer.probabilities[2]).toBe(0);
    expect(answer.probabilities.reduce((sum, each) => sum + each)).toBeCloseTo(1, 12);
    expect(ask(model, "a", "b", "c!")).toEqual(answer);
  });
});
