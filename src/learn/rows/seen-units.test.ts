import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decisionWorld } from "../../../test/support/decision-world.ts";
import { trainUcb1 } from "../../../test/support/train-bandits.ts";
import { decodeModel, encodeModel } from "../../policy/checkpoint.ts";
import { checkSplit, DEFAULT_SPLIT, hasSeen, partOf, splitOf, withSplit } from "../index.ts";

describe("splits", () => {
  it("are a function of the id, and near their shares", () => {
    const counts = { train: 0, calibration: 0, judge: 0 };
    for (let i = 0; i < 20_000; i++) counts[partOf(`task-${i}`, DEFAULT_SPLIT)]++;
    expect(counts.train / 20_000).toBeCloseTo(0.6, 1);
    expect(counts.calibration / 20_000).toBeCloseTo(0.2, 1);
    fc.assert(
      fc.property(fc.string(), (id) => partOf(id, DEFAULT_SPLIT) === partOf(id, { ...DEFAULT_SPLIT })),
    );
  });

  it("move with the salt alone", () => {
    const parts = (salt: string) =>
      Array.from({ length: 64 }, (_, i) => partOf(`t${i}`, { ...DEFAULT_SPLIT, salt }));
    expect(parts("a")).toEqual(parts("a"));
    expect(parts("a")).not.toEqual(parts("b"));
  });

  it("refuse shares that do not sum to 1", () => {
    for (const shares of [
      [0.5, 0.2, 0.2],
      [0, 0.5, 0.5],
      [1.2, -0.1, -0.1],
    ] as const)
      expect(() => checkSplit({ ...DEFAULT_SPLIT, shares })).toThrow(/add up to 1/);
  });

  it("travel in the checkpoint, bound by its config, and a changed list is found", () => {
    const model = trainUcb1(decisionWorld(20, 1));
    expect(splitOf(model, "x")).toBeUndefined();
    const units = { train: ["a", "b", "b"], calibration: ["c"] };
    const marked = withSplit(model, { rule: DEFAULT_SPLIT, units });
    const back = decodeModel(encodeModel(marked), "x");
    const { rule, seen } = splitOf(back, "x")!;
    expect(rule).toEqual(DEFAULT_SPLIT);
    expect(["a", "b", "c", "d"].map((unit) => hasSeen(seen.train, unit))).toEqual([true, true, false, false]);
    expect(hasSeen(seen.calibration, "c")).toBe(true);
    const forged = { ...back, tensors: { ...back.tensors, seen_train: back.tensors.seen_calibration! } };
    expect(() => splitOf(forged, "x")).toThrow(/train units hash to/);
  });
});
