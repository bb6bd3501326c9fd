import { describe, expect, test } from "vitest";
import {
  crowdedBuckets,
  type DecisionPolicy,
  explainPolicy,
  type FeatureSpec,
  type PolicyModel,
  withUsualRequest,
} from "../index.ts";
import { answerOf } from "../policy-of.ts";

const spec: FeatureSpec = {
  schema: "rollbook.feature-spec.v1",
  ...{ wordBuckets: 4096, wordWeights: "count", maxWords: 64 },
  ...{ fields: [{ name: "tools", kind: "number" }], candidate: ["price"] },
};
const size = 15 + 2 + 4096;
const tensor = (shape: number[], data: Float64Array) => ({ shape, data });
const candidates = ["small", "large"].map((id, i) => ({
  ...{ id, selectable: true, reasons: [], features: { price: i } },
}));
const context = { prompt: "Prove the theorem. 定理", fields: { tools: 2 } };

function linear(): PolicyModel {
  const weights = Float64Array.from({ length: 2 * size }, (_, i) => ((i * 37) % 19) / 10 - 0.95);
  return {
    ...{ kind: "softmax-linear", spec },
    ...{ arms: ["small", "large"], config: {}, settings: { temperature: 0.5 } },
    tensors: {
      weights: tensor([2, size], weights),
      candidate_weights: tensor([1], Float64Array.of(-0.5)),
    },
  };
}
/** Log-odds of the first candidate. */
const logOdds = (answer: DecisionPolicy["answer"]) => {
  const [p = 0, q = 0] = answer(context, candidates).probabilities;
  return Math.log(p / q);
};

describe("the parts of a linear policy", () => {
  test("add up to the score that decides, and name words, fields and facts of the candidate", () => {
    const [small, large] = explainPolicy(linear(), context, candidates);
    expect(small!.score! - large!.score!).toBeCloseTo(logOdds(answerOf(linear())), 9);
    const names = large!.parts.map(({ feature }) => feature);
    // A pair of words counts half for each of them.
    for (const name of ["“theorem”", "“Prove”", "“定”", "field tools", "price of the candidate"])
      expect(names).toContain(name);
    // Two pairs of this prompt share a bucket, so the weight belongs to both pairs.
    expect(names).toContain("the hash bucket of “the theorem”, “theorem 定”");
    expect(names).not.toContain("a word past the limit");
    expect(Math.abs(large!.parts[0]!.part)).toBeGreaterThanOrEqual(Math.abs(large!.parts[1]!.part));
  });

  test("count from an average request, where the checkpoint knows one: what every request has explains none", () => {
    const others = ["Say hello.", "Prove it.", "定理"].map((prompt) => ({ prompt, fields: { tools: 2 } }));
    const model = withUsualRequest(linear(), others);
    const [before] = explainPolicy(linear(), context, candidates);
    const [small] = explainPolicy(model, context, candidates);
    expect(small!.score).toBeCloseTo(before!.score!, 9);
    expect(small!.usual! + small!.parts.reduce((sum, { part }) => sum + part, 0)).toBeCloseTo(
      small!.score!,
      9,
    );
    const names = small!.parts.map(({ feature }) => feature);
    // All requests have a bias and two tools, and a price is the same in every request.
    for (const name of [
      "bias of the prompt",
      "field tools",
      "field tools is given",
      "price of the candidate",
    ])
      expect(names).not.toContain(name);
    for (const name of ["“theorem”", "common words that are not in this prompt"])
      expect(names).toContain(name);
    // By hand: the mean score of the requests behind the average request.
    const mean = others.reduce((sum, each) => sum + explainPolicy(model, each, candidates)[0]!.score!, 0) / 3;
    expect(small!.usual).toBeCloseTo(mean, 9);
    expect(answerOf(model)(context, candidates)).toEqual(answerOf(linear())(context, candidates));
  });

  test("name no word alone where a few buckets hold all words", () => {
    const few = linear();
    const size16 = 15 + 2 + 16;
    const weights = Float64Array.from({ length: 2 * size16 }, (_, i) => ((i * 37) % 19) / 10 - 0.95);
    const others = ["Say hello to all of them.", "Prove it in three lines of text.", "Add 2 and 2."];
    const model = withUsualRequest(
      {
        ...{ ...few, spec: { ...spec, wordBuckets: 16 } },
        tensors: { ...few.tensors, weights: tensor([2, size16], weights) },
      },
      others.map((prompt) => ({ prompt, fields: { tools: 2 } })),
    );
    expect(crowdedBuckets(model)).toBe(16);
    expect(crowdedBuckets(withUsualRequest(few, [context]))).toBeUndefined();
    const [small] = explainPolicy(model, context, candidates);
    const buckets = small!.parts.map(({ feature }) => feature).filter((name) => name.includes("“"));
    expect(buckets.length).toBeGreaterThan(1);
    for (const name of buckets) expect(name).toMatch(/^the hash bucket of “/);
    // Only words of this request are named.
    const named = buckets.flatMap((name) => name.match(/[^“” ,]+(?=[^“]*”)/g) ?? []);
    for (const word of named) expect(context.prompt).toContain(word);
  });

  test("are empty for a candidate that it has never seen", () => {
    const stranger = { ...candidates[0]!, id: "stranger" };
    expect(explainPolicy(linear(), context, [stranger])).toEqual([
      { id: "stranger", known: false, parts: [] },
    ]);
  });
});

test("a bandit that counts is explained by mean and bonus, as it ranks", () => {
  const model: PolicyModel = {
    ...linear(),
    kind: "ucb1",
    settings: {},
    tensors: {
      counts: tensor([2], Float64Array.of(90, 10)),
      sums: tensor([2], Float64Array.of(63, 5)),
    },
  };
  const [small, large] = explainPolicy(model, context, candidates);
  // By hand: 63/90 and √(2 ln 100 / 90); 5/10 and √(2 ln 100 / 10).
  expect(small).toMatchObject({ tried: 90, mean: 0.7 });
  expect(small!.bonus).toBeCloseTo(0.3199, 4);
  expect(large!.score).toBeCloseTo(0.5 + 0.9597, 4);
  expect(answerOf(model)(context, candidates).probabilities).toEqual([0, 1]);
});

test("a linear bandit is explained by the parts of its mean and by its bonus", () => {
  const small = { ...spec, wordBuckets: 0, fields: [], candidate: [] };
  const inverse = new Float64Array(2 * 15 * 15);
  for (let arm = 0; arm < 2; arm++) for (let i = 0; i < 15; i++) inverse[arm * 225 + i * 16] = 0.25;
  const weights = new Float64Array(30);
  weights[0] = 0.4; // the bias of the first arm
  const model: PolicyModel = {
    ...{ kind: "linucb", spec: small, arms: ["small", "large"], config: {}, settings: { alpha: 2 } },
    tensors: { inverse: tensor([2, 15, 15], inverse), weights: tensor([2, 15], weights) },
  };
  const [first] = explainPolicy(model, { prompt: "", fields: {} }, candidates);
  // An empty prompt has only the bias: x = (1), variance 1/4, bonus 2·1/2.
  expect(first).toMatchObject({ mean: 0.4, bonus: 1, score: 1.4 });
  expect(first!.parts).toEqual([{ feature: "bias of the prompt", part: 0.4 }]);
});
