import fc from "fast-check";
import { expect, test } from "vitest";
import type { SparseVector } from "../../policy/features.ts";
import { OnlineRegressor } from "./online-regressor.ts";

const vector = (...values: number[]): SparseVector => ({
  indices: Int32Array.from(values.keys()),
  values: Float64Array.from(values),
  count: values.length,
});

test("the first step is the one computed by hand", () => {
  // p = 0, y = 1: G = 4, step 1/√4 = ½, response ½, update (1 − e^(−2·½·½)) / ½ · ½ = 1 − e^(−½).
  const model = new OnlineRegressor({ size: 1, rate: 0.5 });
  expect(model.learn(vector(1), 1)).toBe(0);
  expect(model.predict(vector(1))).toBeCloseTo(1 - Math.exp(-0.5), 14);
});

test("the unit of a feature leaves no trace", () => {
  const row = fc.tuple(fc.integer({ min: -100, max: 100 }), fc.integer({ min: -3, max: 3 }));
  fc.assert(
    fc.property(
      fc.array(row, { minLength: 1, maxLength: 30 }),
      fc.constantFrom(1e-3, 0.5, 1e4),
      (rows, unit) => {
        const plain = new OnlineRegressor({ size: 2, rate: 0.5 });
        const scaled = new OnlineRegressor({ size: 2, rate: 0.5 });
        for (const [x, y] of rows)
          expect(scaled.learn(vector(1, (x / 100) * unit), y)).toBeCloseTo(
            plain.learn(vector(1, x / 100), y),
            8,
          );
      },
    ),
  );
});

test("a line is found, and a step never passes its target", () => {
  const model = new OnlineRegressor({ size: 2, rate: 0.5 });
  for (let i = 0; i < 4000; i++) {
    const x = ((i * 37) % 101) / 101;
    const row = vector(1, x);
    const before = model.learn(row, 2 * x - 1);
    const after = model.predict(row);
    expect((2 * x - 1 - after) * (2 * x - 1 - before)).toBeGreaterThanOrEqual(-1e-12);
  }
  expect(model.predict(vector(1, 0.25))).toBeCloseTo(-0.5, 2);
  expect(model.predict(vector(1, 0.75))).toBeCloseTo(0.5, 2);
});

test("predictions stay in the range, and bad options and targets are refused", () => {
  const model = new OnlineRegressor({ size: 1, rate: 5, range: { low: 0, high: 0.5 } });
  for (let i = 0; i < 20; i++) model.learn(vector(1), 9);
  expect(model.predict(vector(1))).toBe(0.5);
  expect(() => model.learn(vector(1), Number.NaN)).toThrow(/not finite/);
  expect(() => new OnlineRegressor({ size: 1, rate: 0 })).toThrow(/rate is 0/);
});

test("a feature too small to square is passed over", () => {
  const model = new OnlineRegressor({ size: 2, rate: 0.5 });
  model.learn(vector(1, 6e-163), -3);
  expect(model.predict(vector(1, 0))).toBeLessThan(-0.3);
});
