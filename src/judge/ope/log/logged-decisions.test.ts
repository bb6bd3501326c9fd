import { describe, expect, test } from "vitest";
import { banditLog, chainLog } from "../../../../test/ope/worlds.ts";
import { rngFrom } from "../../../base/rng.ts";
import {
  checkDecisions,
  checkWithoutPropensities,
  type LoggedDecisions,
  unitsOf,
} from "./logged-decisions.ts";

const good = banditLog(50, rngFrom(1));

describe("logged decisions", () => {
  test("a sound log passes, as a bandit and as a chain", () => {
    expect(() => checkDecisions(good)).not.toThrow();
    expect(() => checkDecisions(chainLog(20, rngFrom(2)))).not.toThrow();
  });

  test.each([
    ["missing-propensity", "behaviour", Number.NaN],
    ["zero-propensity", "behaviour", 0],
    ["zero-propensity", "behaviour", -0.1],
    ["bad-propensity", "behaviour", 1.0001],
    ["bad-propensity", "behaviour", Number.POSITIVE_INFINITY],
    ["bad-reward", "reward", Number.NaN],
    ["bad-reward", "reward", Number.NEGATIVE_INFINITY],
    ["bad-target", "target", 1.5],
    ["bad-target", "target", Number.NaN],
  ] as const)("%s names the row: %s = %s", (code, column, value) => {
    expect(faultOf({ ...good, [column]: good[column].with(17, value) })).toMatchObject({
      code,
      fields: { row: 17 },
      message: expect.stringContaining("row 17"),
    });
  });

  test("candidates must be known, sum to 1 and agree with the chosen column", () => {
    const candidates = good.candidates!;
    const broken = (patch: object) => faultOf({ ...good, candidates: { ...candidates, ...patch } });
    expect(broken({ chosen: candidates.chosen.with(4, 3) })).toMatchObject({
      code: "unseen-candidate",
      fields: { row: 4 },
    });
    expect(broken({ target: candidates.target.with(9, 0.95) })).toMatchObject({ code: "bad-distribution" });
    expect(broken({ target: candidates.target.slice(3) })).toMatchObject({ code: "column-length" });
  });

  test("features must be finite, splits not empty, chains without holes", () => {
    const context = { width: 4, values: good.context!.values.with(10, Number.NaN) };
    expect(faultOf({ ...good, context })).toMatchObject({ code: "bad-feature", fields: { row: 2 } });
    const none = new Float64Array(0);
    expect(faultOf({ reward: none, behaviour: none, target: none })).toMatchObject({ code: "empty-log" });
    const chain = chainLog(5, rngFrom(3));
    const step = chain.chain!.step;
    const at = step.indexOf(3);
    expect(faultOf({ ...chain, chain: { discount: 1, step: step.with(at, 4) } })).toMatchObject({
      code: "bad-step",
      fields: { row: at },
      message: expect.stringContaining("leaves a hole"),
    });
    expect(faultOf({ ...chain, chain: { discount: 1, step: step.with(at, 0) } })).toMatchObject({
      code: "bad-step",
    });
  });

  test("without propensities everything else is still checked", () => {
    const unlogged = { ...good, behaviour: good.behaviour.map(() => Number.NaN) };
    expect(() => checkWithoutPropensities(unlogged)).not.toThrow();
    expect(() => checkWithoutPropensities({ ...unlogged, reward: good.reward.with(3, Number.NaN) })).toThrow(
      "row 3",
    );
  });

  test("rows of an episode are one unit", () => {
    const units = unitsOf(chainLog(6, rngFrom(4)));
    expect(units.count).toBe(6);
    expect([...units.rows!]).toEqual([4, 4, 4, 4, 4, 4]);
  });
});

function faultOf(log: LoggedDecisions): unknown {
  try {
    checkDecisions(log);
  } catch (error) {
    return error;
  }
  return undefined;
}
