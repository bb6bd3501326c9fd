import { describe, expect, test } from "vitest";
import {
  CHAIN_TRUTH,
  chainLog,
  chainPaths,
  chainProbabilities,
  DISCOUNT,
  HORIZON,
} from "../../../test/ope/worlds.ts";
import { rngFrom } from "../../base/rng.ts";
import { diagnose } from "./diagnostics.ts";
import { chainDr } from "./estimators/chain-dr.ts";
import { standardError } from "./estimators/estimate.ts";
import { fittedQValue } from "./estimators/fitted-q-value.ts";
import { perDecisionIs } from "./estimators/per-decision-is.ts";
import { weightedPerDecisionIs } from "./estimators/weighted-per-decision-is.ts";
import { checkDecisions, type LoggedDecisions } from "./log/logged-decisions.ts";
import { crossFitQ } from "./models/fitted-q.ts";

/** All 256 paths of the chain, one episode each. Expectations are exact sums over the paths. */
const paths = chainPaths();
const everyPath = logOfPaths();
const expectation = (terms: Float64Array) =>
  paths.reduce((s, { probability }, e) => s + probability * terms[e]!, 0);

describe("chains, exactly", () => {
  test("the paths' probabilities sum to 1", () => {
    expect(paths).toHaveLength(256);
    expect(paths.reduce((s, path) => s + path.probability, 0)).toBeCloseTo(1, 14);
  });

  test("the expectation of per-decision IS is the value by dynamic programming", () => {
    expect(expectation(perDecisionIs(everyPath).ratios[0]!.top)).toBeCloseTo(CHAIN_TRUTH, 12);
  });

  test("chain DR has the same expectation whatever its model says", () => {
    const rng = rngFrom(5);
    const rows = paths.length * HORIZON;
    // Any function of state and action: v̂ must be its expectation under the target.
    const q = [rng.float() * 9, rng.float() * 9, rng.float() * 9, rng.float() * 9];
    const chosen = new Float64Array(rows);
    const expected = new Float64Array(rows);
    paths.forEach(({ steps }, e) => {
      steps.forEach(({ state, action }, t) => {
        const p = chainProbabilities(state, 1).target;
        chosen[e * HORIZON + t] = q[state * 2 + action]!;
        expected[e * HORIZON + t] = p * q[state * 2 + 1]! + (1 - p) * q[state * 2]!;
      });
    });
    expect(expectation(chainDr(everyPath, { chosen, expected }).ratios[0]!.top)).toBeCloseTo(CHAIN_TRUTH, 12);
  });

  test("each step's ratio in weighted per-decision IS converges to that step's expected reward", () => {
    const total = weightedPerDecisionIs(everyPath).ratios.reduce(
      (s, { top, bottom }) => s + expectation(top) / expectation(bottom!),
      0,
    );
    expect(total).toBeCloseTo(CHAIN_TRUTH, 12);
  });
});

describe("chains, sampled", () => {
  const log = chainLog(3000, rngFrom(21));
  const estimates = [
    perDecisionIs(log),
    weightedPerDecisionIs(log),
    chainDr(log, crossFitQ(log, { rng: rngFrom(22) })),
  ];

  test("all three lie within four standard errors of the exact value", () => {
    for (const estimate of estimates)
      expect(Math.abs(estimate.value - CHAIN_TRUTH) / standardError(estimate), estimate.name).toBeLessThan(4);
  });

  test("weighting and the value model each cut the error", () => {
    const [plain, weighted, robust] = estimates.map(standardError);
    expect(weighted!).toBeLessThan(plain!);
    expect(robust!).toBeLessThan(0.8 * plain!);
  });

  test("a finished episode keeps its weight in the denominator", () => {
    // Two episodes, all weights 2; one ends after a step. By hand: step 0: (2·1 + 2·3)/4, step 1: 4·5/(2 + 4).
    const log: LoggedDecisions = {
      reward: Float64Array.of(1, 3, 5),
      behaviour: Float64Array.of(0.25, 0.25, 0.25),
      target: Float64Array.of(0.5, 0.5, 0.5),
      episode: Int32Array.of(0, 1, 1),
      chain: { step: Int32Array.of(0, 0, 1), discount: 1 },
    };
    expect(weightedPerDecisionIs(log).value).toBeCloseTo(2 + 20 / 6, 14);
    expect(perDecisionIs(log).value).toBe((2 + 6 + 20) / 2);
  });
});

describe("chains in units", () => {
  // Four episodes of one decision with weights 2, 0, 2, 1; the first two are one unit.
  const log: LoggedDecisions = {
    reward: Float64Array.of(4, 9, 5, 4),
    behaviour: Float64Array.of(0.5, 0.5, 0.5, 0.5),
    target: Float64Array.of(1, 0, 1, 0.5),
    episode: Int32Array.of(0, 1, 2, 3),
    chain: { step: new Int32Array(4), discount: 1, unit: Int32Array.of(7, 7, 8, 9) },
  };

  test("estimates are means of unit means, and so are their errors: by hand", () => {
    const plain = perDecisionIs(log);
    // Unit means (8 + 0)/2, 10 and 4: their mean is 6, their error √((4 + 16 + 4)/6).
    expect(plain).toMatchObject({ value: 6, units: 3 });
    expect(standardError(plain)).toBeCloseTo(2, 14);
    expect(weightedPerDecisionIs(log).value).toBeCloseTo((4 + 10 + 4) / (1 + 2 + 1), 14);
    const ones = new Float64Array(4).fill(1);
    const robust = chainDr(log, { chosen: ones, expected: ones });
    // 1 + w·(r − 1): unit means (7 + 1)/2, 9 and 4.
    expect(robust.value).toBeCloseTo(17 / 3, 14);
    expect(standardError(robust)).toBeCloseTo(5 / 3, 14);
    expect(fittedQValue(log, { chosen: ones, expected: Float64Array.of(0, 4, 3, 1) }).value).toBe(2);
  });

  test("diagnostics count units: by hand, unit weights 1, 2 and 1", () => {
    expect(diagnose(log)).toMatchObject({
      ...{ rows: 4, units: 3, effectiveSize: 16 / 6, largestWeight: 2, largestShare: 0.5, meanWeight: 4 / 3 },
    });
  });

  test("an episode in two units is refused", () => {
    const torn = { ...log, episode: Int32Array.of(0, 1, 2, 2) };
    const chain = { ...log.chain!, step: Int32Array.of(0, 0, 0, 1) };
    expect(() => checkDecisions({ ...torn, chain })).toThrow(
      expect.objectContaining({ code: "torn-episode", fields: { row: 3, value: "9" } }),
    );
  });
});

function logOfPaths(): LoggedDecisions {
  const rows = paths.length * HORIZON;
  const log = {
    reward: new Float64Array(rows),
    behaviour: new Float64Array(rows),
    target: new Float64Array(rows),
    episode: new Int32Array(rows),
    chain: { step: new Int32Array(rows), discount: DISCOUNT },
  };
  paths.forEach(({ steps }, e) => {
    steps.forEach(({ state, action, reward }, t) => {
      const row = e * HORIZON + t;
      const { behaviour, target } = chainProbabilities(state, action);
      log.reward[row] = reward;
      log.behaviour[row] = behaviour;
      log.target[row] = target;
      log.episode[row] = e;
      log.chain.step[row] = t;
    });
  });
  return log;
}
