import fc from "fast-check";
import { expect, test } from "vitest";
import { distinctRows, type VectorRows } from "./distinct-rows.ts";
import { neighbourMeans } from "./neighbours.ts";

/** Few columns and values, so that rows repeat; columns ascend within a row. */
const vectors = fc.array(
  fc.uniqueArray(fc.tuple(fc.nat(3), fc.constantFrom(1, 2)), {
    selector: ([column]) => column,
    maxLength: 3,
  }),
  { minLength: 1, maxLength: 12 },
);

function rowsOf(lists: readonly (readonly (readonly [number, number])[])[]): VectorRows {
  const sorted = lists.map((list) => [...list].sort(([a], [b]) => a - b));
  const start = Int32Array.from([0, ...sorted.map((_, r) => sorted.slice(0, r + 1).flat().length)]);
  return {
    start,
    indices: Int32Array.from(sorted.flat(), ([column]) => column),
    values: Float64Array.from(sorted.flat(), ([, value]) => value),
  };
}

const textOf = ({ start, indices, values }: VectorRows, r: number) =>
  JSON.stringify([...indices.slice(start[r], start[r + 1]), ...values.slice(start[r], start[r + 1])]);

test("two rows are of one kind if their vectors are equal and nothing else parts them", () => {
  fc.assert(
    fc.property(vectors, fc.boolean(), (lists, parted) => {
      const rows = rowsOf(lists);
      const same = (a: number, b: number) => !parted || a % 2 === b % 2;
      const { kind, first } = distinctRows(rows, same);
      for (let a = 0; a < kind.length; a++) {
        expect(first[kind[a]!]).toBeLessThanOrEqual(a);
        for (let b = 0; b < a; b++)
          expect(kind[a] === kind[b]).toBe(textOf(rows, a) === textOf(rows, b) && same(a, b));
      }
    }),
  );
});

test("neighbours among repeated rows are those of a search through every row", () => {
  fc.assert(
    fc.property(vectors, fc.integer({ min: 1, max: 4 }), (lists, k) => {
      const rows = rowsOf(lists);
      const count = lists.length;
      const target = Float64Array.from({ length: count }, (_, r) => r * r);
      const prior = Float64Array.of(0.5);
      const outcomeRow = Int32Array.from({ length: count }, (_, r) => r);
      const near = neighbourMeans(
        { ...rows, outcomeRow, arm: new Int32Array(count), target },
        { size: 4, arms: 1, ks: [k], prior },
      );
      const asked = { indices: Int32Array.of(0, 2), values: Float64Array.of(1, 1), count: 2 };
      const distance = (r: number) => {
        let sum = 0;
        for (let e = rows.start[r]!; e < rows.start[r + 1]!; e++) {
          const value = rows.values[e]!;
          sum += value * value - (rows.indices[e]! % 2 === 0 ? 2 * value : 0);
        }
        return sum;
      };
      const best = [...outcomeRow].sort((a, b) => distance(a) - distance(b) || a - b).slice(0, k);
      const out = new Float64Array(1);
      near(asked, out);
      expect(out[0]).toBe(best.reduce((sum, r) => sum + target[r]!, 0.5) / (best.length + 1));
    }),
  );
});
