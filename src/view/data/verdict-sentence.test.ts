import { expect, it } from "vitest";
import type { Evaluation } from "../../judge/index.ts";
import { difference, type Estimate, estimateOf, standardError } from "../../judge/ope/index.ts";
import { verdictSentence } from "./verdict-sentence.ts";

const meanOf = (...values: number[]) =>
  estimateOf("DR", [{ top: Float64Array.from(values), bottom: undefined }]);
const valued = (estimate: Estimate) => ({ estimate, standardError: standardError(estimate), intervals: [] });

it("an estimate outside the range of quality is shown as it is: the figures differ by the difference", () => {
  const [mine, theirs] = [meanOf(1.04, 1.1), meanOf(0.94, 0.96)];
  const evaluation = {
    ...{ units: 2, level: 0.95, certification: "certified", measures: ["quality"] },
    liveness: { floor: 0 },
    contenders: [
      { name: "learned", basis: "off-policy", values: { quality: valued(mine) } },
      { name: "static", basis: "off-policy", values: { quality: valued(theirs) } },
    ],
    comparisons: [
      {
        ...{ measure: "quality", against: "static", says: "better" },
        difference: valued(difference(mine, theirs)),
      },
    ],
  } as unknown as Evaluation;
  // Range at which the tables of an evaluation are clipped.
  const facts = { policy: "p", unit: "task", range: { low: 0, high: 1 } };
  expect(verdictSentence(evaluation, facts)).toContain("quality 1.07 instead of 0.95 (+0.12)");
});

it("a policy that may never decide is not compared", () => {
  const evaluation = { liveness: { floor: null } } as unknown as Evaluation;
  expect(verdictSentence(evaluation, { policy: "p", unit: "task" })).toMatch(
    /^verdict: p never decides, .*Nothing was compared\.$/,
  );
});
