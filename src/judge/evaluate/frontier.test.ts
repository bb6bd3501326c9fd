import { describe, expect, test } from "vitest";
import { apgr, cpt, frontier } from "./frontier.ts";

const outcomes = (score: number[]) => ({
  score: Float64Array.from(score),
  weak: [1, 0, 0, 0],
  strong: [1, 1, 1, 0],
});

describe("the frontier of a router", () => {
  test("by hand: the two questions that gain come first, so the gap is recovered at half the calls", () => {
    const points = frontier(outcomes([0, 3, 2, 1]), 4);
    expect(points.map(({ quality }) => quality)).toEqual([0.25, 0.5, 0.75, 0.75, 0.75]);
    // Trapezoids above the weak line: .25·(.125 + .375 + .5 + .5) = .375, over the gap .5.
    expect(apgr(points)).toBeCloseTo(0.75, 12);
    expect(cpt(points, 0.5)).toBeCloseTo(0.25, 12);
    expect(cpt(points, 0.75)).toBeCloseTo(0.375, 12);
  });

  test("a constant score recovers half the gap, whatever the order of the questions", () => {
    expect(apgr(frontier(outcomes([1, 1, 1, 1]), 4))).toBeCloseTo(0.5, 12);
  });

  test("is refused for scores that are no numbers, and where the strong model is no better", () => {
    expect(() => frontier(outcomes([0, Number.NaN, 0, 0]))).toThrow("row 1");
    const same = { score: new Float64Array(2), weak: [1, 0], strong: [0, 1] };
    expect(() => apgr(frontier(same))).toThrow(expect.objectContaining({ code: "no-gap" }) as Error);
  });
});
