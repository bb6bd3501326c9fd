import { describe, expect, test } from "vitest";
import { log } from "../../base/exact-math.ts";
import { rngFrom } from "../../base/rng.ts";
import type { SparseRows } from "../rows/sparse-rows.ts";
import { type LogisticData, logisticObjective, trainLogistic } from "./logistic.ts";

/** Sparse rows from dense rows. */
function denseRows(rows: readonly (readonly number[])[]): SparseRows {
  const size = rows[0]!.length;
  return {
    size,
    start: Int32Array.from({ length: rows.length + 1 }, (_, r) => r * size),
    indices: Int32Array.from({ length: rows.length * size }, (_, e) => e % size),
    values: Float64Array.from(rows.flat()),
  };
}
const options = { l2: 0, maxIterations: 200, tolerance: 1e-10 };

describe("multinomial logistic regression", () => {
  test("has the gradient of its loss, by central differences, with masks, weights and candidate features", () => {
    const rng = rngFrom(5);
    const draw = (count: number) => Float64Array.from({ length: count }, () => rng.float() - 0.5);
    const rows = denseRows(Array.from({ length: 6 }, () => [1, ...draw(2)]));
    const mask = new Uint8Array(18).fill(1);
    mask[2] = 0;
    mask[4] = 0;
    const data: LogisticData = {
      rows,
      labels: Int32Array.of(0, 2, 1, 0, 2, 1),
      classes: 3,
      mask,
      candidates: { width: 2, values: draw(36) },
      weights: Float64Array.of(1, 2, 1, 0.5, 1, 3),
    };
    const objective = logisticObjective(data, 0.1);
    const point = draw(11);
    const gradient = new Float64Array(11);
    objective(point, gradient);
    const scratch = new Float64Array(11);
    for (let i = 0; i < 11; i++) {
      const moved = (by: number) =>
        objective(
          point.map((each, j) => (j === i ? each + by : each)),
          scratch,
        );
      expect(gradient[i]).toBeCloseTo((moved(1e-5) - moved(-1e-5)) / 2e-5, 8);
    }
  });

  test("with nothing but a bias finds the log odds of the labels", () => {
    const data = { rows: denseRows([[1], [1], [1], [1]]), labels: Int32Array.of(0, 1, 1, 1), classes: 2 };
    const { weights, converged } = trainLogistic(data, options);
    expect(converged).toBe(true);
    expect(weights[1]! - weights[0]!).toBeCloseTo(log(3), 8);
  });

  test("refuses empty, one-class and masked-away labels with the row", () => {
    const rows = denseRows([[1], [1]]);
    const refuse = (data: LogisticData, code: string) =>
      expect(() => trainLogistic(data, options)).toThrow(expect.objectContaining({ code }) as Error);
    refuse(
      { rows: { ...rows, start: Int32Array.of(0) }, labels: new Int32Array(), classes: 2 },
      "empty-split",
    );
    refuse({ rows, labels: Int32Array.of(1, 1), classes: 2 }, "one-class-data");
    refuse({ rows, labels: Int32Array.of(0, 2), classes: 2 }, "bad-training-data");
    refuse(
      { rows, labels: Int32Array.of(0, 1), classes: 2, mask: Uint8Array.of(1, 1, 1, 0) },
      "bad-training-data",
    );
  });
});
