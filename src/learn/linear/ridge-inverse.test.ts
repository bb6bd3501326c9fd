import fc from "fast-check";
import { expect, test } from "vitest";
import { ridgeInverse } from "./ridge-inverse.ts";

test("times λI + Σxxᵀ it is the identity, for any vectors", () => {
  const vectors = fc.array(
    fc.array(fc.double({ min: -3, max: 3, noNaN: true }), { minLength: 5, maxLength: 5 }),
    {
      maxLength: 8,
    },
  );
  fc.assert(
    fc.property(vectors, fc.double({ min: 0.1, max: 10, noNaN: true }), (rows, ridge) => {
      const size = 5;
      const full = (i: number, j: number) =>
        rows.reduce((sum, x) => sum + x[i]! * x[j]!, 0) + (i === j ? ridge : 0);
      const gram = Float64Array.from({ length: 15 }, (_, at) => {
        const i = Math.floor((Math.sqrt(8 * at + 1) - 1) / 2);
        const j = at - (i * (i + 1)) / 2;
        return full(i, j) - (i === j ? ridge : 0);
      });
      const inverse = ridgeInverse(gram, size, ridge);
      for (let i = 0; i < size; i++)
        for (let j = 0; j < size; j++) {
          let sum = 0;
          for (let k = 0; k < size; k++) sum += full(i, k) * inverse[k * size + j]!;
          expect(Math.abs(sum - (i === j ? 1 : 0))).toBeLessThan(1e-9);
          expect(inverse[i * size + j]).toBe(inverse[j * size + i]);
        }
    }),
  );
});
