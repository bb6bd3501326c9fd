import { describe, expect, it } from "vitest";
import { measuresOf } from "./judged-row.ts";

describe("the parts of a reward", () => {
  it("are the same whichever sign says what cost means", () => {
    const right = { value: 1, weight: 1 };
    // By hand: right 1, a cost of 0.3 that counts half, a latency of 0.2 that counts a tenth.
    const minusOne = { right, cost: { value: -0.3, weight: 0.5 }, latency: { value: -0.2, weight: 0.1 } };
    const dollars = { right, cost: { value: 0.3, weight: -0.5 }, latency: { value: 0.2, weight: -0.1 } };
    for (const terms of [minusOne, dollars])
      expect(measuresOf(0.83, { terms })).toEqual({ reward: 0.83, quality: 1, cost: 0.3, latency: 0.2 });
  });

  it("leave what no term explains to quality, but no rounding", () => {
    const terms = {
      quality: { value: 0, weight: 1 },
      cost: { value: -0.1, weight: 0.6 },
      latency: { value: -0.3, weight: 0.2 },
    };
    expect(measuresOf(0 - 0.1 * 0.6 - 0.3 * 0.2, { terms }).quality).toBe(0);
    expect(measuresOf(-0.5, { terms: {} }).quality).toBe(-0.5);
    expect(measuresOf(1, { terms }).quality).toBeCloseTo(1.12, 12);
  });

  it("take a price for the cost where none was logged", () => {
    expect(measuresOf(1, { terms: {}, price: 3 }).cost).toBe(3);
    expect(measuresOf(1, { terms: { cost: { value: -2, weight: 0 } }, price: 3 }).cost).toBe(2);
    expect(measuresOf(1, { terms: {} }).cost).toBeNull();
  });
});
