import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { KeyMap, pairKey } from "./key-map.ts";

const digest = (n: number) => createHash("sha256").update(String(n)).digest();

it("answers what a Map of digests answers, for any sequence of keys", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(500), { maxLength: 3000 }), (keys) => {
      const [map, oracle] = [new KeyMap(), new Map<string, number>()];
      for (const [value, key] of keys.entries()) {
        const name = digest(key).toString("hex");
        expect(map.getOrSet(digest(key), value)).toBe(oracle.get(name));
        if (!oracle.has(name)) oracle.set(name, value);
      }
      expect(map.size).toBe(oracle.size);
      for (const key of keys) expect(map.get(digest(key))).toBe(oracle.get(digest(key).toString("hex")));
      expect(map.get(digest(501))).toBeUndefined();
    }),
    { numRuns: 20 },
  );
});

it("pairs of one digest with different numbers are different keys", () => {
  const map = new KeyMap();
  const bytes = Buffer.concat([digest(1), digest(2)]);
  for (let i = 0; i < 1000; i++) expect(map.getOrSet(pairKey(bytes, i, 32), i)).toBeUndefined();
  for (let i = 0; i < 1000; i++) expect(map.get(pairKey(digest(2), i))).toBe(i);
});
