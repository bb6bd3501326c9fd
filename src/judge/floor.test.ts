import { describe, expect, it } from "vitest";
import { digestJson } from "../base/digest.ts";
import { type Rng, rngFrom } from "../base/rng.ts";
import { type DecisionPolicy, parseStaticTable } from "../policy/index.ts";
import { type JudgedRow, measuresOf } from "./evaluate/judged-row.ts";
import { calibrateFloor, realisedRisk } from "./floor.ts";

/** The policy wants "cheap" and states its confidence; cheap is right exactly that often. The table says "strong". */
const policy: DecisionPolicy = {
  family: "router",
  revision: { id: "r1" as never, digest: digestJson("test", 1) },
  answer: ({ fields }) => ({ probabilities: [1, 0], confidence: fields.sure as number }),
};
const table = parseStaticTable("schema: rollbook.static-table.v1\ndefault: strong", "t");
/** E[1{sure ≥ λ}·(1 − sure)] for sure uniform in 0 … 1, by hand. */
const trueRisk = (floor: number | null) => (floor === null ? 0 : (1 - floor) ** 2 / 2);
const PROPENSITY = 0.4;
const terms = { policy, table, propensityFloor: PROPENSITY, range: { low: 0, high: 1 } };

function drawRows(count: number, rng: Rng, { full = false, perUnit = 1 } = {}): JudgedRow[] {
  return Array.from({ length: count }, (_, i) => {
    const sure = rng.float();
    const quality = [rng.float() < sure ? 1 : 0, 1];
    const chosen = rng.float() < PROPENSITY ? 0 : 1;
    const measures = quality.map((each) => measuresOf(each, { terms: {} }));
    return {
      id: `d-${i}`,
      unit: `u-${Math.floor(i / perUnit)}`,
      context: { prompt: "", fields: { sure } },
      candidates: ["cheap", "strong"].map((id) => ({ id, selectable: true, reasons: [], features: {} })),
      chosen,
      propensity: chosen === 0 ? PROPENSITY : 1 - PROPENSITY,
      reward: quality[chosen]!,
      measures: measures[chosen]!,
      ...(full ? { known: measures } : {}),
    };
  });
}

describe("the confidence floor", () => {
  it.each([
    ["one logged outcome per row", {}],
    ["every outcome known", { full: true }],
    ["three rows in a unit", { perUnit: 3 }],
  ])("keeps its promise on average over 400 calibrations, and is not idle: %s", (_name, world) => {
    const rng = rngFrom(11);
    const risks = Array.from({ length: 400 }, (_, r) =>
      trueRisk(calibrateFloor(drawRows(300, rng.split(r), world), { ...terms, alpha: 0.1 }).floor),
    );
    const mean = risks.reduce((sum, each) => sum + each, 0) / risks.length;
    const error = Math.sqrt(risks.reduce((sum, each) => sum + (each - mean) ** 2, 0)) / risks.length;
    expect(mean).toBeLessThanOrEqual(0.1 + 3 * error);
    // A floor that is too high would keep every promise.
    expect(mean).toBeGreaterThan(0.07);
  });

  it("shows the realised risk of fresh rows, which covers the true one", () => {
    const rng = rngFrom(5);
    const { floor } = calibrateFloor(drawRows(500, rng.split("calibration")), { ...terms, alpha: 0.1 });
    const { interval } = realisedRisk(drawRows(20_000, rng.split("judge")), { ...terms, floor });
    expect(interval.low).toBeLessThan(trueRisk(floor));
    expect(interval.high).toBeGreaterThan(trueRisk(floor));
  });

  it("does not call departures without risk because no failure was seen yet", () => {
    const rows = drawRows(300, rngFrom(2)).map((row) => ({ ...row, measures: measuresOf(1, { terms: {} }) }));
    const { estimate, interval } = realisedRisk(rows, { ...terms, floor: 0 });
    expect(estimate.value).toBe(0);
    // Weights of 0 and 2.5: an outcome that n·0.4 departures have not shown, at 2.5 each.
    expect(interval.high).toBeCloseTo((2.5 * Math.log(40)) / 300, 3);
    // A policy that never acts cannot lose.
    expect(realisedRisk(rows, { ...terms, floor: null }).interval).toMatchObject({ low: 0, high: 0 });
  });

  it("lets the policy act everywhere where it does no harm, and nowhere where too few rows speak", () => {
    const rows = drawRows(300, rngFrom(2)).map((row) => ({ ...row, measures: measuresOf(1, { terms: {} }) }));
    expect(calibrateFloor(rows, { ...terms, alpha: 0.1 })).toMatchObject({ floor: 0, empiricalRisk: 0 });
    const few = calibrateFloor(rows.slice(0, 10), { ...terms, alpha: 0.1 });
    // B/(n+1) alone is 2.5/11.
    expect(few).toMatchObject({ floor: null, coverage: 0, bound: 2.5 / 11 });
  });

  it("gives the bound of an old promise to its last bit", () => {
    const unsure: DecisionPolicy = {
      ...policy,
      answer: ({ fields: { sure } }) => ({
        probabilities: [sure as number, 1 - (sure as number)],
        confidence: sure as number,
      }),
    };
    const rows = drawRows(300, rngFrom(5)).map((row, i) => ({
      ...row,
      measures: measuresOf((i % 11) / 10, { terms: {} }),
    }));
    // Computed with the code of commit 087425f7. `evaluate` and `gate` compare bounds exactly.
    expect(calibrateFloor(rows, { ...terms, policy: unsure, alpha: 0.1 })).toMatchObject({
      floor: 0.8264610594844334,
      bound: 0.09966653294809551,
    });
  });

  it("refuses what breaks its assumptions, with the decision and the remedy", () => {
    const rows = drawRows(50, rngFrom(3));
    const fault = (change: Partial<JudgedRow>, more = {}) => {
      const broken = rows.with(7, { ...rows[7]!, ...change });
      return () => calibrateFloor(broken, { ...terms, alpha: 0.1, ...more });
    };
    expect(fault({ propensity: 0.01 })).toThrow(/d-7.*below the promised 0\.4.*--propensity-floor/);
    expect(fault({ propensity: null })).toThrow(/d-7.*was not logged/);
    expect(fault({ measures: measuresOf(2, { terms: {} }), chosen: 0, propensity: 0.4 })).toThrow(
      /d-7.*quality 2 is outside.*--quality-range/,
    );
    expect(fault({}, { alpha: 1.5 })).toThrow(/not between 0 and 1/);
  });
});
