import fc from "fast-check";
import { expect, test } from "vitest";
import { scanMask } from "./mask-runs.ts";

/** Reference: scans byte by byte. */
function scanSlowly(bytes: Uint8Array) {
  if (bytes.some((value) => value > 1)) return { ones: -1, edges: undefined };
  const padded = [0, ...bytes, 0];
  const edges = [...padded.keys()].filter((i) => i > 0 && padded[i] !== padded[i - 1]).map((i) => i - 1);
  const ones = bytes.reduce((sum, value) => sum + value, 0);
  return { ones, edges: edges.length === 0 || edges.length > 128 ? undefined : edges };
}

const runs = fc
  .array(fc.record({ value: fc.constantFrom(0, 0, 1, 1, 1, 2), length: fc.integer({ min: 1, max: 40 }) }), {
    maxLength: 12,
  })
  .map((list) => list.flatMap(({ value, length }) => Array<number>(length).fill(value)));

test("a mask is counted and cut into runs as byte by byte, at any alignment", () => {
  fc.assert(
    fc.property(runs, fc.integer({ min: 0, max: 7 }), (values, shift) => {
      const bytes = new Uint8Array([...Array<number>(shift).fill(1), ...values, 1, 1, 1]).subarray(
        shift,
        shift + values.length,
      );
      expect(scanMask(bytes)).toEqual(scanSlowly(bytes));
    }),
    { numRuns: 1000 },
  );
});

test.each([63, 64, 65, 200])("%i runs", (count) => {
  for (const last of [0, 1]) {
    const bytes = Uint8Array.from({ length: 2 * count - last }, (_, i) => (i + 1) % 2);
    expect(scanMask(bytes)).toEqual(scanSlowly(bytes));
    expect(scanMask(bytes).edges?.length).toBe(count > 64 ? undefined : 2 * count);
  }
});
