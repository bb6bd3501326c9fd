import { describe, expect, test } from "vitest";
import { gradientOf, predictRow, trainRidge } from "../../bench/support/judge/ridge.ts";
import type { SparseRows } from "../../src/learn/rows/sparse-rows.ts";

/** x = (1, t) for t = 0 … 3. */
const rows: SparseRows = {
  size: 2,
  start: Int32Array.of(0, 2, 4, 6, 8),
  indices: Int32Array.of(0, 1, 0, 1, 0, 1, 0, 1),
  values: Float64Array.of(1, 0, 1, 1, 1, 2, 1, 3),
};
const exact = { maxIterations: 20, tolerance: 1e-12 };

describe("sparse ridge regression", () => {
  test("finds the line through points on a line, and the closed form with a penalty", () => {
    const targets = Float64Array.of(1, 3, 5, 7);
    expect([...trainRidge({ rows, targets }, { l2: 0, ...exact }).weights].map((w) => w.toFixed(8))).toEqual([
      "1.00000000",
      "2.00000000",
    ]);
    // By hand: slope = cov / (var + l2) = 2.5 / (1.25 + 0.25), and the bias keeps the mean 4 at t = 1.5.
    const { weights } = trainRidge({ rows, targets }, { l2: 0.25, ...exact });
    expect(weights[1]).toBeCloseTo(2.5 / 1.5, 8);
    expect(weights[0]).toBeCloseTo(4 - (1.5 * 2.5) / 1.5, 8);
  });

  test("counts a row of weight 2 as two rows, and ends where the gradient does", () => {
    const data = { rows, targets: Float64Array.of(0, 1, 0, 2), weights: Float64Array.of(2, 1, 1, 1) };
    const { weights } = trainRidge(data, { l2: 0.1, ...exact });
    for (const slope of gradientOf(data, weights, 0.1)) expect(slope).toBeCloseTo(0, 9);
    const loss = (w: Float64Array) => {
      let sum = 0.1 * w[1]! ** 2;
      for (let r = 0; r < 4; r++)
        sum += (data.weights[r]! / 5) * (data.targets[r]! - predictRow(rows, w, r)) ** 2;
      return sum;
    };
    const at = Float64Array.of(0.3, -0.2);
    const gradient = gradientOf(data, at, 0.1);
    for (const i of [0, 1]) {
      const moved = (by: number) => loss(at.map((each, j) => (j === i ? each + by : each)));
      expect(2 * gradient[i]!).toBeCloseTo((moved(1e-5) - moved(-1e-5)) / 2e-5, 8);
    }
  });

  test("refuses rewards that are not finite, with the row", () => {
    expect(() => trainRidge({ rows, targets: Float64Array.of(0, Number.NaN, 0, 0) }, { l2: 1 })).toThrow(
      expect.objectContaining({
        code: "bad-training-data",
        fields: expect.objectContaining({ row: 1 }),
      }) as Error,
    );
  });
});
