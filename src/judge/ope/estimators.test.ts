import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BANDIT_TRUTH, banditLog } from "../../../test/ope/worlds.ts";
import { rngFrom } from "../../base/rng.ts";
import { directMethod } from "./estimators/direct-method.ts";
import { doublyRobust } from "./estimators/doubly-robust.ts";
import { drShrinkage } from "./estimators/dr-shrinkage.ts";
import { difference, type Estimate, standardError } from "./estimators/estimate.ts";
import { ips } from "./estimators/ips.ts";
import { lambdaGrid, tuneLambda } from "./estimators/slope.ts";
import { snips } from "./estimators/snips.ts";
import { switchDr } from "./estimators/switch-dr.ts";
import { type LoggedDecisions, weightsOf } from "./log/logged-decisions.ts";
import { crossFitRewards } from "./models/reward-model.ts";
import { predictionsFrom } from "./models/reward-predictions.ts";

/** Four rows, two candidates, small enough to compute by hand. */
const tiny: LoggedDecisions = {
  reward: Float64Array.of(1, 0, 2, 1),
  behaviour: Float64Array.of(0.5, 0.25, 0.8, 0.5),
  target: Float64Array.of(0.25, 1, 0.4, 1),
  candidates: {
    count: 2,
    chosen: Int32Array.of(0, 1, 0, 1),
    target: Float64Array.of(0.25, 0.75, 0, 1, 0.4, 0.6, 0, 1),
  },
};
const q = predictionsFrom(tiny, Float64Array.of(1, 2, 0, 1, 1, 0, 2, 0.5));

describe("estimators by hand", () => {
  test("w = 0.5, 4, 0.5, 2", () => {
    expect([...weightsOf(tiny)]).toEqual([0.5, 4, 0.5, 2]);
  });
  test("IPS = (0.5 + 0 + 1 + 2)/4", () => expect(ips(tiny).value).toBe(0.875));
  test("SNIPS = 3.5/7", () => expect(snips(tiny).value).toBe(0.5));
  test("DM = (1.75 + 1 + 0.4 + 0.5)/4", () => expect(directMethod(tiny, q).value).toBeCloseTo(0.9125, 15));
  test("DR adds (0 − 4 + 0.5 + 1)/4", () =>
    expect(doublyRobust(tiny, q).value).toBeCloseTo(0.9125 - 0.625, 15));
  test("Switch-DR with λ = 2 drops the weight of 4", () =>
    expect(switchDr(tiny, q, 2).value).toBeCloseTo(0.9125 + 0.375, 15));
  test("DRos with λ = 4: ŵ = 8/17, 4/5, 8/17, 1", () =>
    expect(drShrinkage(tiny, q, 4).value).toBeCloseTo(0.9125 + (-4 / 5 + 8 / 17 + 1 / 2) / 4, 15));
  test("λ = ∞ is DR, λ = 0 is DM", () => {
    for (const at of [switchDr, drShrinkage]) {
      expect(at(tiny, q, Number.POSITIVE_INFINITY).value).toBe(doublyRobust(tiny, q).value);
      expect(at(tiny, q, 0).value).toBe(directMethod(tiny, q).value);
    }
  });
  test("the standard error of SNIPS counts its denominator (delta method)", () => {
    // φ = w(r − ½)/(7/4): 1/7, −8/7, 3/7, 4/7; se² = Σφ²/(4·3).
    expect(standardError(snips(tiny))).toBeCloseTo(Math.sqrt(90 / 49 / 12), 14);
    // A constant reward has error 0. Ignoring the denominator would give an error above 0.
    const constant = { ...tiny, reward: Float64Array.of(3, 3, 3, 3) };
    expect(standardError(snips(constant))).toBe(0);
  });
});

describe("estimators in a known world", () => {
  const log = banditLog(20_000, rngFrom(11));
  const model = crossFitRewards(log, { rng: rngFrom(12) });
  const all: Estimate[] = [ips(log), snips(log), doublyRobust(log, model)];

  test("each lies within four standard errors of the exact value", () => {
    for (const estimate of all)
      expect(Math.abs(estimate.value - BANDIT_TRUTH) / standardError(estimate), estimate.name).toBeLessThan(
        4,
      );
  });

  test("DM with a good model is close, though its standard error knows nothing of the model's", () => {
    expect(Math.abs(directMethod(log, model).value - BANDIT_TRUTH)).toBeLessThan(0.02);
  });

  test("DR with a good model is sharper than IPS", () => {
    expect(standardError(doublyRobust(log, model))).toBeLessThan(0.8 * standardError(ips(log)));
  });

  test("DR survives a useless model, DM does not", () => {
    const useless = predictionsFrom(log, new Float64Array(20_000 * 3).fill(0.9));
    const dr = doublyRobust(log, useless);
    expect(Math.abs(dr.value - BANDIT_TRUTH) / standardError(dr)).toBeLessThan(4);
    expect(Math.abs(directMethod(log, useless).value - BANDIT_TRUTH)).toBeGreaterThan(0.2);
  });

  test("a seed fixes the cross-fitted result to the bit, another changes it", () => {
    const again = (seed: number) => doublyRobust(log, crossFitRewards(log, { rng: rngFrom(seed) })).value;
    expect(again(12)).toBe(doublyRobust(log, model).value);
    expect(again(13)).not.toBe(again(12));
  });

  test("the tuned λ keeps DR where the model is bad and may leave it where the model is good", () => {
    const bad = predictionsFrom(log, new Float64Array(20_000 * 3).fill(5));
    const tuned = tuneLambda(lambdaGrid(weightsOf(log)), (lambda) => switchDr(log, bad, lambda));
    expect(Math.abs(tuned.estimate.value - BANDIT_TRUTH)).toBeLessThan(0.3);
    const kept = tuneLambda(lambdaGrid(weightsOf(log)), (lambda) => switchDr(log, model, lambda));
    expect(standardError(kept.estimate)).toBeLessThanOrEqual(standardError(doublyRobust(log, model)) + 1e-12);
  });
});

describe("laws", () => {
  const rows = fc.array(
    fc.record({
      reward: fc.double({ min: -5, max: 5, noNaN: true }),
      behaviour: fc.double({ min: 0.01, max: 1, noNaN: true }),
      target: fc.double({ min: 0.001, max: 1, noNaN: true }),
    }),
    { minLength: 2, maxLength: 40 },
  );
  const build = (items: { reward: number; behaviour: number; target: number }[]): LoggedDecisions => ({
    reward: Float64Array.from(items, (x) => x.reward),
    behaviour: Float64Array.from(items, (x) => x.behaviour),
    target: Float64Array.from(items, (x) => x.target),
  });

  test("a policy judged on its own log gets the mean reward", () => {
    fc.assert(
      fc.property(rows, (items) => {
        const log = build(items.map((x) => ({ ...x, target: x.behaviour })));
        const mean = items.reduce((s, x) => s + x.reward, 0) / items.length;
        expect(ips(log).value).toBeCloseTo(mean, 10);
        expect(snips(log).value).toBeCloseTo(mean, 10);
      }),
    );
  });

  test("SNIPS stays inside the rewards and moves with them", () => {
    fc.assert(
      fc.property(rows, fc.double({ min: -3, max: 3, noNaN: true }), (items, shift) => {
        const value = snips(build(items)).value;
        const rewards = items.map((x) => x.reward);
        expect(value).toBeGreaterThanOrEqual(Math.min(...rewards) - 1e-9);
        expect(value).toBeLessThanOrEqual(Math.max(...rewards) + 1e-9);
        const moved = snips(build(items.map((x) => ({ ...x, reward: x.reward + shift })))).value;
        expect(moved).toBeCloseTo(value + shift, 9);
      }),
    );
  });

  test("an estimate minus itself is 0 without error", () => {
    fc.assert(
      fc.property(rows, (items) => {
        const zero = difference(snips(build(items)), snips(build(items)));
        expect(zero.value).toBe(0);
        expect(standardError(zero)).toBe(0);
      }),
    );
  });

  test("a target that never agrees with the log is no estimate but an error", () => {
    const log = { ...tiny, target: new Float64Array(4) };
    expect(() => snips(log)).toThrow(expect.objectContaining({ code: "no-overlap" }));
  });
});
