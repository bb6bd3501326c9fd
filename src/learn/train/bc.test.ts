import { describe, expect, test } from "vitest";
import { behaviour, candidate, decisionWorld, promptOf } from "../../../test/support/decision-world.ts";
import { digestBytes } from "../../base/digest.ts";
import { encodeModel } from "../../policy/checkpoint.ts";
import { DEFAULT_FEATURES } from "../../policy/feature-spec.ts";
import { answerOf } from "../../policy/policy-of.ts";
import { fitTemperature, logLoss } from "../linear/temperature.ts";
import { trainBc } from "./bc.ts";

const spec = { ...DEFAULT_FEATURES, wordBuckets: 256 };
const data = decisionWorld(4000, 3);
const two = [candidate("large", true, 10), candidate("small")];
const ask = (hard: boolean) => ({ prompt: promptOf(hard, 7), fields: { hard } });

describe("behaviour cloning", () => {
  const { model, report } = trainBc(data, { spec, seed: 1n });

  test("answers, over the prompts of a kind, with the probability of the policy that made the log", () => {
    const answer = answerOf(model);
    for (const hard of [true, false]) {
      const shares = Array.from({ length: 200 }, (_, n) => {
        const { probabilities, confidence } = answer({ prompt: promptOf(hard, 20 * n), fields: {} }, two);
        expect(confidence).toBe(Math.max(...probabilities));
        return probabilities[0]!;
      });
      // About 1600 training rows of each kind: four standard errors of their share are below .05. The temperature,
      // fitted on 800 rows, may shift the mean by as much again.
      const mean = shares.reduce((sum, each) => sum + each) / shares.length;
      expect(Math.abs(mean - behaviour(hard))).toBeLessThan(0.08);
    }
  });

  test("respects masks, gives the unseen nothing, and claims nothing where it knows nobody", () => {
    const answer = answerOf(model);
    expect(answer(ask(true), [candidate("large", false), candidate("small")]).probabilities).toEqual([0, 1]);
    const three = answer(ask(true), [...two, candidate("new")]);
    expect(three.probabilities[2]).toBe(0);
    expect(answer(ask(true), [candidate("x"), candidate("y")])).toEqual({
      probabilities: [0.5, 0.5],
      confidence: 0,
    });
  });

  test("is a function of data, options and seed: the same bytes from rows in any order, others from another seed", () => {
    const digest = (seed: bigint, rows = data.rows) =>
      digestBytes("test", encodeModel(trainBc({ ...data, rows }, { spec, seed, maxIterations: 8 }).model));
    expect(digest(1n, [...data.rows].reverse())).toBe(digest(1n));
    expect(digest(2n)).not.toBe(digest(1n));
  });

  test("is calibrated on rows it was not trained on, and says how well", () => {
    expect(report.trainRows + report.calibrationRows).toBe(4000);
    expect(report.logLoss[1]).toBeLessThanOrEqual(report.logLoss[0]);
    expect(report.converged).toBe(true);
  });

  test("uses candidate features where declared, and idf where asked", () => {
    const wide = { ...spec, candidate: ["price"], wordWeights: "idf" as const };
    const { model: other } = trainBc(data, { spec: wide, seed: 1n });
    const { probabilities } = answerOf(other)(ask(true), two);
    expect(Math.abs(probabilities[0]! - behaviour(true))).toBeLessThan(0.1);
    expect(() => answerOf(other)(ask(true), [{ ...two[0]!, features: {} }])).toThrow("price");
  });

  test("refuses a split that leaves nothing, and a log with one choice only", () => {
    expect(() => trainBc({ ...data, rows: data.rows.slice(0, 1) }, { spec, seed: 1n })).toThrow("leave");
    const same = data.rows.filter((row) => row.chosen === 0);
    expect(() => trainBc({ ...data, rows: same }, { spec, seed: 1n })).toThrow(
      expect.objectContaining({ code: "one-class-data" }) as Error,
    );
  });
});

test("the temperature of scores that are three times too sure is 3", () => {
  // Half of the rows have a score gap of ±3·ln 3; the true odds are 3 : 1.
  const scores = Float64Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? 3 * Math.log(3) : 0));
  const rows = { scores, labels: Int32Array.of(0, 0, 0, 1, 0, 0, 0, 1), classes: 2 };
  expect(fitTemperature(rows)).toBeCloseTo(3, 5);
  expect(logLoss(rows, 3)).toBeLessThan(logLoss(rows, 1));
});
