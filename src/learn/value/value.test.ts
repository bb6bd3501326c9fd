import { describe, expect, test } from "vitest";
import { digestJson, rngFrom } from "../../base/index.ts";
import { answerOf, decodeModel, encodeModel, type PolicyModel } from "../../policy/index.ts";
import type { OutcomeRow } from "../rows/index.ts";
import { meansOf, steadyMeans } from "./learners.ts";
import { solveRidge } from "./solve-ridge.ts";
import { type CscType, trainCsc } from "./train-csc.ts";
import { trainValue } from "./train-value.ts";
import type { ValueKind } from "./try-families.ts";

const digest = digestJson("test", 0);
const ARMS = ["code", "prose", "weak"];
const open = (id: string) => ({ id, selectable: true, reasons: [], features: {} });

/** `code` answers questions about programs, `prose` the others, `weak` a few of both. Their costs are 1, 1 and 0. */
function questions(count: number, { full, seed = 1 }: { full: boolean; seed?: number }): OutcomeRow[] {
  const rng = rngFrom(seed);
  const words = { code: ["loop", "array", "compile", "stack"], prose: ["poem", "letter", "story", "essay"] };
  return Array.from({ length: count }, (_, i) => {
    const topic = rng.below(2) === 0 ? ("code" as const) : ("prose" as const);
    const prompt = `please write a ${words[topic][rng.below(4)]} with ${words[topic][rng.below(4)]} number ${rng.below(50)}`;
    const rewards = ARMS.map((arm) =>
      rng.float() < (arm === topic ? 0.9 : arm === "weak" ? 0.4 : 0.2) ? 1 : 0,
    );
    const chosen = rng.below(3);
    const terms = (a: number) => ({
      quality: { value: rewards[a]!, weight: 1 },
      cost: { value: a === 2 ? 0 : 1, weight: 0 },
    });
    return {
      id: `d${String(i).padStart(5, "0")}`,
      context: { prompt, fields: {} },
      candidates: ARMS.map((id, a) => ({
        ...open(id),
        ...(full ? { outcome: { reward: rewards[a]!, terms: terms(a) } } : {}),
      })),
      chosen,
      propensity: full ? null : 1 / 3,
      reward: rewards[chosen]!,
      terms: terms(chosen),
    };
  });
}

const choice = (model: PolicyModel, prompt: string, fields = {}): string => {
  const { probabilities } = answerOf(model)({ prompt, fields }, model.arms.map(open));
  return model.arms[probabilities.indexOf(Math.max(...probabilities))]!;
};

describe("a value policy", () => {
  test("is judged on held-out rows by the candidates that each row offered", () => {
    const rows = questions(600, { full: false });
    // Half of the rows offer two other candidates, whose rewards are higher.
    const others = questions(600, { full: false, seed: 2 }).map((row) => ({
      ...{ ...row, id: `e${row.id}`, candidates: [open("bad"), open("good")], chosen: row.chosen % 2 },
      ...{ propensity: row.chosen === 1 ? 1 / 3 : 2 / 3, reward: 4 + (row.chosen % 2), terms: {} },
    }));
    const heldOutValue = (all: OutcomeRow[]) =>
      trainValue({ rows: all, digest }, { kind: "ridge", seed: 1n }).report.crossValidated!.value;
    const [own, other] = [heldOutValue(rows), heldOutValue(others)];
    expect(other).toBe(5);
    expect(heldOutValue([...rows, ...others])).toBeCloseTo((own + other) / 2, 0);
  });

  test.each(["auto", "ridge", "logistic", "knn"] satisfies ValueKind[])(
    "%s finds which candidate suits which question, from one outcome each and from all",
    (kind) => {
      for (const full of [false, true]) {
        const { model, report } = trainValue({ rows: questions(600, { full }), digest }, { kind, seed: 1n });
        expect(choice(model, "please write a loop with array number 7")).toBe("code");
        expect(choice(model, "please write a poem with essay number 7")).toBe("prose");
        expect(report.fullInformation).toBe(full);
        expect(report.crossValidated!.value).toBeGreaterThan(report.crossValidated!.single + 0.1);
      }
    },
  );

  test("is the same bytes for the same rows in any order, and survives its checkpoint", () => {
    const rows = questions(300, { full: false });
    const train = (of: readonly OutcomeRow[]) =>
      trainValue({ rows: of, digest }, { kind: "auto", seed: 3n }).model;
    const model = train(rows);
    const bytes = encodeModel(model);
    expect(Buffer.from(encodeModel(train(rngFrom(9).shuffle([...rows])))).equals(Buffer.from(bytes))).toBe(
      true,
    );
    const again = decodeModel(bytes, "test");
    for (const { context, candidates } of rows.slice(0, 20))
      expect(answerOf(again)(context, candidates)).toEqual(answerOf(model)(context, candidates));
  });

  test("is as sure as its margin, and not sure at all between equals", () => {
    const { model } = trainValue(
      { rows: questions(600, { full: true }), digest },
      { kind: "ridge", seed: 1n },
    );
    const sure = answerOf(model)({ prompt: "loop array compile stack", fields: {} }, ARMS.map(open));
    expect(sure.confidence).toBeGreaterThan(0.2);
    expect(sure.confidence).toBeLessThan(1);
    const constant = questions(100, { full: true }).map((row) => ({
      ...row,
      candidates: row.candidates.map((one) => ({ ...one, outcome: { reward: 1, terms: {} } })),
    }));
    const { model: flat } = trainValue({ rows: constant, digest }, { kind: "auto", seed: 1n });
    expect(answerOf(flat)({ prompt: "loop", fields: {} }, ARMS.map(open)).confidence).toBeLessThan(1e-6);
  });

  test("gives nothing to a candidate it has no outcome of, and takes no number for granted", () => {
    const rows = questions(200, { full: false }).filter(({ chosen }) => chosen !== 2);
    const { model } = trainValue({ rows, digest }, { kind: "auto", seed: 1n });
    expect(model.arms).toEqual(["code", "prose"]);
    const { probabilities } = answerOf(model)({ prompt: "loop", fields: {} }, ["weak", "code"].map(open));
    expect(probabilities).toEqual([0, 1]);
    const numbers = rows.map((row, i) => ({ ...row, context: { ...row.context, fields: { n: i } } }));
    const { model: numeric } = trainValue({ rows: numbers, digest }, { kind: "ridge", seed: 1n });
    expect(() => choice(numeric, "x", { n: "many" })).toThrow("field n is");
  });

  test("reads every field and every category: the fortieth field with thirty values decides", () => {
    const rng = rngFrom(5);
    const rows = questions(3000, { full: true }).map((row) => {
      const fields = Object.fromEntries(
        Array.from({ length: 40 }, (_, f) => [`f${String(f).padStart(2, "0")}`, `v${rng.below(30)}`]),
      );
      const right = Number(fields.f39!.slice(1)) % 3;
      const candidates = ARMS.map((id, a) => ({
        ...open(id),
        outcome: { reward: Number(a === right), terms: {} },
      }));
      return { ...row, context: { prompt: "", fields }, candidates };
    });
    const { model } = trainValue({ rows, digest }, { kind: "ridge", seed: 1n });
    const right = rows.filter(
      ({ context, candidates }) =>
        candidates.find(({ id }) => id === choice(model, "", context.fields))!.outcome.reward === 1,
    );
    expect(right.length / rows.length).toBeGreaterThan(0.95);
  });

  test("keeps a mean cost, and a larger cost weight never costs more", () => {
    const rows = questions(900, { full: true });
    const train = (more: object) => trainValue({ rows, digest }, { kind: "ridge", seed: 1n, ...more });
    const { report } = train({ meanCost: 0.5 });
    expect(report.sweep![0]!.cost).toBeLessThanOrEqual(0.5);
    const sweep = report.sweep!.slice(1);
    for (const [i, point] of sweep.entries())
      if (i > 0) expect(point.cost).toBeLessThanOrEqual(sweep[i - 1]!.cost + 1e-9);
    expect(sweep[0]!.quality).toBeGreaterThan(sweep.at(-1)!.quality);
    expect(choice(train({ costWeight: 10 }).model, "loop array")).toBe("weak");
    expect(() => train({ meanCost: -1 })).toThrow("cannot be kept");
    const priceless = rows.map((row) => ({
      ...row,
      candidates: row.candidates.map(({ outcome, ...one }) => ({
        ...one,
        outcome: { ...outcome!, terms: {} },
      })),
    }));
    expect(() => trainValue({ rows: priceless, digest }, { kind: "ridge", seed: 1n, costWeight: 1 })).toThrow(
      /has no cost.*data import --map cost=COLUMN.*price: of every model/,
    );
  });

  test("keeps a mean cost over all rows if rows have different candidates", () => {
    const rows = Array.from({ length: 800 }, (_, i): OutcomeRow => {
      // The more expensive candidate is the better one, and its cost is higher in every second row.
      const [ids, price] = i % 2 === 0 ? [["a", "b"], 1] : [["c", "d"], 10];
      const outcomes = [1, 0].map((good) => ({
        reward: good,
        terms: { quality: { value: good, weight: 1 }, cost: { value: good * price, weight: 0 } },
      }));
      return {
        ...{ id: `d${String(i).padStart(3, "0")}`, context: { prompt: `question ${i % 50}`, fields: {} } },
        candidates: ids.map((id, a) => ({ ...open(id), outcome: outcomes[a]! })),
        ...{ chosen: 0, propensity: null, ...outcomes[0]! },
      };
    });
    const budget = (meanCost: number) =>
      trainValue({ rows, digest }, { kind: "ridge", seed: 1n, meanCost }).report;
    expect(budget(5.5).sweep![0]).toEqual({ costWeight: 0, quality: 1, cost: 5.5 });
    const { costWeight, sweep } = budget(3);
    expect(costWeight).toBeGreaterThan(0);
    expect(sweep![0]!.cost).toBeGreaterThan(2.5);
    expect(sweep![0]!.cost).toBeLessThanOrEqual(3);
  });

  test("of a handful of rows takes cautious settings and claims no value", () => {
    const { model, report } = trainValue(
      { rows: questions(10, { full: false }), digest },
      { kind: "auto", seed: 1n },
    );
    expect(report.crossValidated).toBeUndefined();
    expect(answerOf(model)({ prompt: "", fields: {} }, ARMS.map(open)).probabilities).toHaveLength(3);
  });
});

describe("what a value policy reads of a question", () => {
  const trained = (rows: OutcomeRow[]) => trainValue({ rows, digest }, { kind: "auto", seed: 1n });
  const full = (i: number, right: number, context: OutcomeRow["context"]): OutcomeRow => ({
    ...{ id: `d${String(i).padStart(5, "0")}`, context, propensity: null, chosen: 0, terms: {} },
    reward: Number(right === 0),
    candidates: ARMS.slice(0, 2).map((id, a) => ({
      ...open(id),
      outcome: { reward: Number(right === a), terms: {} },
    })),
  });
  const shareOf = (
    parts: readonly { learner: string; share: number }[],
    isIt: (learner: string) => boolean,
  ) => parts.reduce((sum, { learner, share }) => (isIt(learner) ? sum + share : sum), 0);

  test("pairs of words are read where they tell more than words, and left out where words tell all", () => {
    const rng = rngFrom(8);
    const other = () => `w${rng.below(40)}`;
    const byWord = Array.from({ length: 500 }, (_, i) => {
      const key = rng.below(6);
      const right = rng.below(5) === 0 ? rng.below(2) : key % 2;
      return full(i, right, { prompt: `${other()} k${key} ${other()}`, fields: {} });
    });
    const byPair = Array.from({ length: 500 }, (_, i) => {
      const [a, b] = [rng.below(4), rng.below(4)];
      return full(i, (a + b) % 2, { prompt: `${other()} a${a} b${b} ${other()}`, fields: {} });
    });
    const isWords = (learner: string) => learner.endsWith(" words");
    const [words, pairs] = [byWord, byPair].map((rows) => trained(rows).report.parts);
    expect(shareOf(words!, isWords)).toBeGreaterThan(0.7);
    expect(shareOf(pairs!, isWords)).toBeLessThan(0.3);
  });

  test("neighbours count numbers in their own units where that predicts better, and a checkpoint keeps it", () => {
    const rng = rngFrom(5);
    const noise = () => rng.float() - 0.5;
    const rows = Array.from({ length: 400 }, (_, i) => {
      const [x, y] = [rng.below(4), rng.below(4)];
      const small = Object.fromEntries(Array.from({ length: 8 }, (_each, j) => [`n${j}`, 0.1 * noise()]));
      return full(i, (x + y) % 2, {
        prompt: "",
        fields: { x: x + 0.2 * noise(), y: y + 0.2 * noise(), ...small },
      });
    });
    const { model, report } = trained(rows);
    expect(
      shareOf(report.parts, (learner) => learner.startsWith("knn") && learner.endsWith(" raw")),
    ).toBeGreaterThan(0.7);
    const [answer, again] = [model, decodeModel(encodeModel(model), "test")].map(answerOf);
    const candidates = ARMS.slice(0, 2).map(open);
    const right = rows.filter(({ context, reward }) => {
      const { probabilities } = answer!(context, candidates);
      expect(again!(context, candidates).probabilities).toEqual(probabilities);
      return probabilities[0] === reward;
    });
    expect(right.length).toBeGreaterThan(390);
  });

  const manyCandidates = (count: number, seed: number) => {
    const rng = rngFrom(seed);
    const arms = Array.from({ length: 9 }, (_, a) => `model-${a}`);
    return Array.from({ length: count }, (_, i): OutcomeRow => {
      const [topic, chosen] = [rng.below(3), rng.below(arms.length)];
      return {
        ...{ id: `d${String(i).padStart(5, "0")}`, candidates: arms.map(open), chosen, propensity: 1 / 9 },
        context: { prompt: "", fields: { topic: `t${topic}` } },
        reward: rng.float() < (chosen % 3 === topic ? 0.62 : 0.48) ? 1 : 0,
      };
    });
  };

  test("many candidates with few outcomes each keep a share: a fold's means hold none of its own outcomes", () => {
    expect(shareOf(trained(manyCandidates(900, 2)).report.parts, () => true)).toBeGreaterThan(0.3);
  });

  test("neighbours that are all outcomes of a candidate have no share: what rounding leaves predicts nothing", () => {
    for (let seed = 1; seed <= 8; seed++)
      expect(shareOf(trained(manyCandidates(200, seed)).report.parts, (each) => each.includes("k=40"))).toBe(
        0,
      );
  });

  test("means are drawn together by their standard error", () => {
    // By hand: the means are 0.2 and 0.8, their middle 0.5, their spread 0.18, the variance of outcomes 0.16.
    const target = Float64Array.from([1, 0, 0, 0, 0, 1, 1, 1, 1, 0]);
    const data = {
      rows: { start: new Int32Array(11), indices: new Int32Array(0), values: new Float64Array(0), size: 0 },
      ...{ arms: 2 },
      outcomes: {
        ...{ start: Int32Array.from({ length: 11 }, (_, r) => r), target, full: false },
        ...{ arm: Int32Array.from([0, 0, 0, 0, 0, 1, 1, 1, 1, 1]), weight: new Float64Array(10).fill(1) },
      },
    };
    const picked = Int32Array.from(target.keys());
    const steady = steadyMeans(data, picked, meansOf(data, picked));
    const trust = 0.18 / (0.18 + 0.16 / 5);
    expect(steady[0]).toBeCloseTo(0.5 - 0.3 * trust, 12);
    expect(steady[1]).toBeCloseTo(0.5 + 0.3 * trust, 12);
  });
});

describe("cost-sensitive classification", () => {
  test.each(["ips", "dm", "dr"] satisfies CscType[])(
    "%s finds which candidate suits which question in one pass, and progressive validation sees it learn",
    (type) => {
      for (const full of [false, true]) {
        const { model, report } = trainCsc({ rows: questions(3000, { full }), digest }, { type });
        expect(choice(model, "please write a loop with array number 7")).toBe("code");
        expect(choice(model, "please write a poem with essay number 7")).toBe("prose");
        expect(report.progressive.map(({ rows }) => rows).slice(-2)).toEqual([2048, 3000]);
        expect(report.progressive.at(-1)!.dr).toBeGreaterThan(0.7);
        expect(report.progressive.at(-1)!.dr).toBeLessThan(0.95);
      }
    },
  );

  test("refuses a log without propensities, and says what to use", () => {
    const rows = questions(50, { full: false }).map((row) => ({ ...row, propensity: null }));
    expect(() => trainCsc({ rows, digest }, {})).toThrow("use `train auto`");
  });
});

test("a long log is judged with all its rows: what six thousand cannot show, twenty thousand can", () => {
  const rng = rngFrom(3);
  const rows = Array.from({ length: 20_000 }, (_, i): OutcomeRow => {
    const topic = rng.below(1500);
    const chosen = rng.below(3);
    return {
      ...{ id: `d${String(i).padStart(5, "0")}`, candidates: ARMS.map(open), chosen, propensity: 1 / 3 },
      context: { prompt: "", fields: { topic: `t${topic}` } },
      reward: rng.float() < (topic % 3 === chosen ? 0.7 : 0.4) ? 1 : 0,
    };
  });
  const gainOf = (count: number) => {
    const { report } = trainValue({ rows: rows.slice(0, count), digest }, { kind: "auto", seed: 1n });
    return report.crossValidated!.value - report.crossValidated!.single;
  };
  expect(gainOf(20_000)).toBeGreaterThan(1.5 * gainOf(6_000));
});

describe("ridge over candidates", () => {
  test("solves the normal equations: two rows, one feature, shared and own parts by hand", () => {
    // Rows x = 1 for candidates 0 and 1 with targets 1 and 3, bias free: b takes the means, w stays 0.
    const rows = {
      start: Int32Array.of(0, 1, 2),
      indices: Int32Array.of(0, 0),
      values: Float64Array.of(1, 1),
      size: 1,
    };
    const outcomes = {
      start: Int32Array.of(0, 1, 2),
      arm: Int32Array.of(0, 1),
      target: Float64Array.of(1, 3),
      weight: Float64Array.of(1, 1),
    };
    const picked = Int32Array.of(0, 1);
    const request = { rows, outcomes, picked, arms: 2, tolerance: 1e-9 };
    const { weights, bias } = solveRidge({ ...request, penalties: { own: 1, shared: 1 } });
    for (const [a, target] of [1, 3].entries()) expect(weights[a]! + bias[a]!).toBeCloseTo(target, 5);
    expect(weights[0]).toBeCloseTo(0, 5);
  });

  test("has a gradient of zero at its solution, by finite differences", () => {
    const rng = rngFrom(2);
    const count = 60;
    const size = 7;
    const start = Int32Array.from({ length: count + 1 }, (_, r) => 3 * r);
    const indices = Int32Array.from({ length: 3 * count }, (_, e) => (e % 3) * 2 + rng.below(2));
    const rows = { start, indices, values: Float64Array.from(indices, () => rng.float() - 0.5), size };
    const outcomes = {
      start: Int32Array.from({ length: count + 1 }, (_, r) => 2 * r),
      arm: Int32Array.from({ length: 2 * count }, (_, t) => (t % 2 === 0 ? 0 : 1 + rng.below(2))),
      target: Float64Array.from({ length: 2 * count }, () => rng.float()),
      weight: Float64Array.from({ length: 2 * count }, () => 0.5 + rng.float()),
    };
    const picked = Int32Array.from({ length: count }, (_, r) => r);
    const solved = solveRidge({
      rows,
      outcomes,
      picked,
      arms: 3,
      penalties: { own: 0.3 },
      tolerance: 1e-9,
      maxIterations: 500,
    });
    const loss = (weights: Float64Array, bias: Float64Array) => {
      let sum = 0;
      for (let r = 0; r < count; r++)
        for (let t = 2 * r; t < 2 * r + 2; t++) {
          const a = outcomes.arm[t]!;
          let score = bias[a]!;
          for (let e = 3 * r; e < 3 * r + 3; e++) score += rows.values[e]! * weights[indices[e]! * 3 + a]!;
          sum += outcomes.weight[t]! * (outcomes.target[t]! - score) ** 2;
        }
      return sum + 0.3 * weights.reduce((total, each) => total + each * each, 0);
    };
    const at = loss(solved.weights, solved.bias);
    for (let j = 0; j < solved.weights.length; j++)
      for (const step of [1e-3, -1e-3]) {
        const moved = solved.weights.slice();
        moved[j] = moved[j]! + step;
        expect(loss(moved, solved.bias)).toBeGreaterThanOrEqual(at - 1e-9);
      }
  });
});
