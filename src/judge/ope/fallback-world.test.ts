/** A peer's offline evaluation averages the rewards of matching rows.
 *  On its own generator that mean is 28 % too high. */
import { describe, expect, test } from "vitest";
import { fallbackWorld } from "../../../test/ope/fallback-world.ts";
import { PythonRandom } from "../../../test/ope/python-random.ts";
import { rngFrom } from "../../base/rng.ts";
import { judgePolicy, type PanelEstimates } from "./panel.ts";
import { panelText } from "./panel-text.ts";

describe("the seed-42 routing log", () => {
  const { alwaysPrimary, truth } = fallbackWorld();
  const verdict = judgePolicy(alwaysPrimary, { rng: rngFrom(42) }) as PanelEstimates;

  test("is CPython's to the bit", () => {
    const random = new PythonRandom(42);
    // random.Random(42).random(), three times, under CPython 3.11.
    expect([random.random(), random.random(), random.random()]).toEqual([
      0.6394267984578837, 0.025010755222666936, 0.27502931836911926,
    ]);
  });

  test("has the known values 0.476 (primary), 0.989 (fallback), 0.832 (behaviour)", () => {
    expect(truth.primary).toBeCloseTo(0.476, 3);
    expect(truth.fallback).toBeCloseTo(0.989, 3);
    expect(truth.behaviour).toBeCloseTo(0.832, 3);
  });

  test("the naive 0.611 is shown and named; SNIPS says 0.460, and its intervals cover 0.476 and exclude 0.611", () => {
    expect(verdict.naive).toBeCloseTo(0.611, 3);
    expect(panelText(verdict)).toMatch(/naive 0\.6114: .*biased/);
    const row = verdict.rows.find(({ estimate }) => estimate.name === "SNIPS")!;
    expect(row.estimate.value).toBeCloseTo(0.46, 3);
    for (const { low, high } of row.intervals) {
      expect(low).toBeLessThan(truth.primary);
      expect(high).toBeGreaterThan(truth.primary);
      expect(high).toBeLessThan(verdict.naive);
    }
  });

  test("the six contexts where the primary could never have been logged are counted", () => {
    expect(verdict.diagnostics.unsupported).toMatchObject({ basis: "distribution", actions: [0] });
    expect(verdict.diagnostics.unsupported.mass * 650).toBeCloseTo(6, 9);
  });

  test("DR's interval covers the truth and is narrower than that of IPS", () => {
    const [ips, dr] = ["IPS", "DR"].map(
      (name) => verdict.rows.find(({ estimate }) => estimate.name === name)!,
    );
    const [bootstrap] = dr!.intervals;
    expect(bootstrap!.low < truth.primary && truth.primary < bootstrap!.high).toBe(true);
    expect(dr!.standardError).toBeLessThan(ips!.standardError);
  });
});
