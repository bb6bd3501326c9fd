import { describe, expect, test } from "vitest";
import { candidate } from "../../test/support/decision-world.ts";
import type { PolicyModel } from "./checkpoint.ts";
import { DEFAULT_FEATURES } from "./feature-spec.ts";
import { answerOf } from "./policy-of.ts";

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
/** A⁻¹ of each arm if only the bias is uncertain. */
function biasOnly(variances: number[]): Float64Array {
  const inverse = new Float64Array(variances.length * 15 * 15);
  variances.forEach((variance, arm) => {
    inverse[arm * 15 * 15] = variance;
  });
  return inverse;
}
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

  test("with linear beliefs gives each arm the probability that its score is the larger, as the normal law has it", () => {
    // Scores N(1, 1) and N(0, 1): the difference is N(1, 2), so the first wins with Φ(1/√2) = 0.76025.
    const model: PolicyModel = {
      ...tally("thompson-linear", [], [], { draws: 40_000, floor: 0, seed: 5, spread: 1 }),
      tensors: {
        inverse: { shape: [2, 15, 15], data: biasOnly([1, 1]) },
        weights: { shape: [2, 15], data: Float64Array.from({ length: 30 }, (_, i) => (i === 0 ? 1 : 0)) },
      },
    };
    const answer = ask(model, "a", "b");
    expect(Math.abs(answer.probabilities[0]! - 0.76025)).toBeLessThan(4 * Math.sqrt((0.76 * 0.24) / 40_000));
    expect(ask(model, "a", "b!").probabilities).toEqual([1, 0]);
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
