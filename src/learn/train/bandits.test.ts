import { describe, expect, test } from "vitest";
import { candidate, decisionWorld, promptOf } from "../../../test/support/decision-world.ts";
import {
  trainLinUcb,
  trainThompsonBeta,
  trainThompsonLinear,
  trainUcb1,
} from "../../../test/support/train-bandits.ts";
import { encodeModel } from "../../policy/checkpoint.ts";
import { DEFAULT_FEATURES, type FeatureSpec } from "../../policy/feature-spec.ts";
import { answerOf } from "../../policy/policy-of.ts";
import type { DecisionData } from "../rows/decision-row.ts";
import { linearTensors } from "./linucb.ts";

const spec: FeatureSpec = {
  ...DEFAULT_FEATURES,
  wordBuckets: 0,
  fields: [{ name: "hard", kind: "number" }],
};
const data = decisionWorld(3000, 1);
const two = [candidate("large", true, 10), candidate("small")];
const ask = (hard: boolean) => ({ prompt: promptOf(hard, 7), fields: { hard } });
const trainers = {
  ucb1: (some: DecisionData) => trainUcb1(some),
  linucb: (some: DecisionData) => trainLinUcb(some, { spec, alpha: 0.1 }),
  "thompson-beta": (some: DecisionData) => trainThompsonBeta(some, { seed: 4 }),
  "thompson-linear": (some: DecisionData) => trainThompsonLinear(some, { spec, seed: 4, spread: 0.1 }),
};

describe.each(Object.entries(trainers))("%s", (_name, train) => {
  test("is the same bytes whatever order the rows come in", () => {
    const shuffled = { ...data, rows: [...data.rows].reverse() };
    expect(Buffer.compare(encodeModel(train(data)), encodeModel(train(shuffled)))).toBe(0);
  });

  test("learns from no unlabelled row, and refuses none labelled, doubled ids and NaN", () => {
    const unlabelled = { ...data.rows[0]!, id: "late", reward: null };
    const more = { ...data, rows: [...data.rows, unlabelled] };
    expect(train(more).tensors).toEqual(train(data).tensors);
    const refused = (rows: DecisionData["rows"], code: string) =>
      expect(() => train({ ...data, rows })).toThrow(expect.objectContaining({ code }) as Error);
    refused([unlabelled], "empty-split");
    refused([data.rows[0]!, data.rows[0]!], "bad-training-data");
    refused([{ ...data.rows[0]!, reward: Number.NaN }], "bad-training-data");
  });
});

describe("contextual bandits", () => {
  test.each(["linucb", "thompson-linear"] as const)(
    "%s finds the best candidate of each kind of prompt",
    (name) => {
      const answer = answerOf(trainers[name](data));
      expect(answer(ask(true), two).probabilities[0]).toBeGreaterThan(0.9);
      expect(answer(ask(false), two).probabilities[1]).toBeGreaterThan(0.9);
    },
  );

  test("A⁻¹ and θ̂ are those of λI + Σxxᵀ and Σrx, as inverted by hand", () => {
    // x = (1, 2) with reward 1, x = (1, 0) with reward 3: A = [[1+1+1, 2], [2, 1+4]], determinant 11, b = (4, 2).
    const sums = { count: 2, sum: 4, gram: Float64Array.of(2, 2, 4), response: Float64Array.of(4, 2) };
    const tensors = linearTensors(
      { size: 2, arms: new Map([["a", sums]]), decisions: 2, low: 1, high: 3 },
      1,
    );
    for (const [i, each] of [5 / 11, -2 / 11, -2 / 11, 3 / 11].entries())
      expect(tensors.inverse!.data[i]).toBeCloseTo(each, 12);
    for (const [i, each] of [16 / 11, -2 / 11].entries())
      expect(tensors.weights!.data[i]).toBeCloseTo(each, 12);
  });

  test("a model too wide for a dense state is refused", () => {
    expect(() => trainLinUcb(data, { spec: DEFAULT_FEATURES })).toThrow("at most 512 features");
  });

  test("Bernoulli posteriors refuse rewards outside 0 … 1", () => {
    const rows = [{ ...data.rows[0]!, reward: 2 }];
    expect(() => trainThompsonBeta({ ...data, rows }, { seed: 1 })).toThrow(/not in 0 … 1.*--form linear/);
  });
});
