import { describe, expect, it } from "vitest";
import { loggedRow } from "../../../test/support/chain-world.ts";
import { digestJson } from "../../base/index.ts";
import { DEFAULT_FEATURES } from "../../policy/index.ts";
import { statisticsOf } from "../bandit/index.ts";
import type { LoggedRow } from "../rows/index.ts";
import { trainValue } from "../value/index.ts";
import { trainBc } from "./bc.ts";
import { checkModel } from "./check-model.ts";
import { ucb1Model } from "./ucb1.ts";

const data = digestJson("test.v1", "rows");

/** Rows of which half have long prompts. The reward is `rewardOf(long, chosen)`. */
function rowsWith(rewardOf: (long: boolean, chosen: number) => number | null): LoggedRow[] {
  return Array.from({ length: 80 }, (_, i) => {
    const [long, chosen] = [i % 2 === 0, (i >> 1) % 2];
    const prompt = long ? "prove the lemma of the book in full" : "add two";
    return {
      ...loggedRow({
        ...{ id: `d-${i}`, task: `t-${i}`, chosen, reward: 0 },
        context: { prompt, fields: { kind: "math" } },
      }),
      reward: rewardOf(long, chosen),
    };
  });
}

describe("checkModel", () => {
  it("tells where the rows went, which features vary, and that the saved policy answers alike", () => {
    const rows = rowsWith((long, chosen) => (long === (chosen === 1) ? 1 : 0)).map((row, i) =>
      i < 6 ? { ...row, reward: null } : row,
    );
    const { model } = trainValue({ rows, digest: data }, { kind: "auto", seed: 1n });
    const { account, checks, warnings } = checkModel(model, rows);
    expect(account).toEqual({ rows: 80, trained: 74, unlabelled: 6 });
    expect(checks).toMatchObject({
      weightsChanged: true,
      lossFinite: true,
      reproduced: 0,
      labelsEqual: false,
    });
    expect(checks.constantFeatures).toBeGreaterThan(0);
    expect(checks.constantFeatures).toBeLessThan(checks.features);
    expect(warnings).toEqual([]);
  });

  it("says so where every reward is the same, and where no question differs", () => {
    const rows = rowsWith(() => 0.5).map((row) => ({ ...row, context: { prompt: "add two", fields: {} } }));
    const { model } = trainValue({ rows, digest: data }, { kind: "ridge", seed: 1n });
    expect(checkModel(model, rows).warnings).toEqual([
      "every reward is the same: the policy has nothing to prefer",
      "no feature varies, so the policy cannot tell requests apart",
    ]);
  });

  it("counts no features of a policy that reads none", () => {
    const rows = rowsWith((_, chosen) => chosen);
    const model = ucb1Model(statisticsOf(rows, undefined), { exploration: 0, data });
    expect(checkModel(model, rows).checks).toMatchObject({ features: 0, constantFeatures: 0 });
  });

  it("takes the choices of a clone as its labels", () => {
    const rows = rowsWith(() => null);
    const spec = { ...DEFAULT_FEATURES, wordBuckets: 64 };
    const { model } = trainBc({ rows, digest: data }, { spec, seed: 1n, l2: 3e-3 });
    expect(checkModel(model, rows)).toMatchObject({
      ...{ account: { trained: 80, unlabelled: 0 }, checks: { labelsEqual: false } },
    });
  });

  it("refuses a weight that is not finite", () => {
    const rows = rowsWith((_, chosen) => chosen);
    const { model } = trainValue({ rows, digest: data }, { kind: "ridge", seed: 1n });
    const weights = model.tensors.linear_weights!;
    const broken = {
      ...weights,
      data: Float64Array.from(weights.data, (_, i) => (i === 3 ? Number.NaN : 0)),
    };
    const damaged = { ...model, tensors: { ...model.tensors, linear_weights: broken } };
    expect(() => checkModel(damaged, rows)).toThrow(/a weight is not finite/);
  });
});
