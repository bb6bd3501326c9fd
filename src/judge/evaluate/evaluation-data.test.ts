import { describe, expect, it } from "vitest";
import { routingWorld } from "../../../test/support/routing-world.ts";
import { rngFrom } from "../../base/rng.ts";
import { toLoggedRow } from "../../convert/routing-jsonl.ts";
import { EvaluationData } from "./evaluation-data.ts";
import { toJudgedRows } from "./judged-row.ts";

const rowsOf = (options = {}) => toJudgedRows(routingWorld(600, 7, options).map(toLoggedRow), "task").rows;
const proofsToStrong = (row: { context: { prompt: string } }) =>
  row.context.prompt.startsWith("Prove") ? [0.1, 0.9] : [0.9, 0.1];

describe("the value of a policy", () => {
  it("is the DR estimate of the panel, of quality and of a cost whose prices are known", () => {
    const priced = rowsOf().map((row) => ({ ...row, prices: [0.1, 1] }));
    const data = new EvaluationData(priced, { rng: rngFrom(1), replicates: 20 });
    const target = data.target(proofsToStrong);
    for (const measure of ["quality", "cost"] as const) {
      const panel = data.panel(target, measure);
      if (panel.kind === "refused") throw new Error(panel.reasons.join());
      const dr = panel.rows.find(({ estimate }) => estimate.name === "DR")!.estimate;
      expect(data.value(target, measure)).toEqual(dr);
    }
  });

  it("is called known where every outcome is, and DR elsewhere, whoever asks", () => {
    const nameOf = (data: EvaluationData) => data.value(data.target(proofsToStrong), "quality").name;
    expect(nameOf(new EvaluationData(rowsOf({ full: true }), { rng: rngFrom(1) }))).toBe("known");
    expect(nameOf(new EvaluationData(rowsOf(), { rng: rngFrom(1) }))).toBe("DR");
  });
});

it("the support check compares the same estimators as the panel", () => {
  // Propensities logged before exploration was added.
  const wrong = rowsOf().map(({ behaviour: _, ...row }) => ({ ...row, propensity: row.propensity! * 0.6 }));
  const limits = {
    effectiveSize: 0,
    largestShare: 1,
    unsupportedMass: 1,
    meanWeightZ: Number.POSITIVE_INFINITY,
  };
  const data = new EvaluationData(wrong, { rng: rngFrom(1), replicates: 20, limits });
  const target = data.target(proofsToStrong);
  const panel = data.panel(target, "quality");
  if (panel.kind === "refused") throw new Error(panel.reasons.join());
  expect(panel.disagreements.length).toBeGreaterThan(0);
  expect(data.support(target, "quality").disagreements).toEqual(panel.disagreements);
});
