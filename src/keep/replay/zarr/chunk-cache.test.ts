import fc from "fast-check";
import { expect, test } from "vitest";
import { ChunkCache } from "./chunk-cache.ts";

test("arrays that share a cache never see each other's chunks, and all of them together keep to its limit", () => {
  const use = fc.record({ array: fc.nat(3), chunk: fc.nat(9), bytes: fc.integer({ min: 1, max: 40 }) });
  fc.assert(
    fc.property(fc.array(use, { maxLength: 80 }), (uses) => {
      const cache = new ChunkCache(100);
      const shelves = Array.from({ length: 4 }, () => cache.shelf<string>());
      for (const { array, chunk, bytes } of uses) {
        const name = `${array}/${chunk}`;
        expect([undefined, name]).toContain(shelves[array]!.get(chunk));
        shelves[array]!.put(chunk, name, bytes);
        expect(shelves[array]!.get(chunk)).toBe(name);
        expect(cache.bytes).toBeLessThanOrEqual(100);
      }
    }),
  );
});

test("what was not used for longest goes first, and what is larger than the cache is not kept", () => {
  const cache = new ChunkCache(100);
  const [a, b] = [cache.shelf<string>(), cache.shelf<string>()];
  a.put(0, "a0", 40);
  b.put(0, "b0", 40);
  a.get(0);
  b.put(1, "b1", 40);
  expect([a.has(0), b.has(0), b.has(1)]).toEqual([true, false, true]);
  b.put(2, "b2", 101);
  expect([b.has(2), cache.bytes]).toEqual([false, 80]);
});
