import fc from "fast-check";
import { expect, test } from "vitest";
import { digestFromBytes, digestJson } from "./digest.ts";
import { DigestTable } from "./digest-table.ts";

test("numbers digests as a Map does, through growth and clearing", () => {
  const table = new DigestTable();
  for (const count of [20_000, 10]) {
    const model = new Map<string, number>();
    for (let i = 0; i < count; i++) {
      const digest = digestJson("test", i % 15_000);
      const before = table.size;
      const hex = digest.slice(7);
      const number = [
        () => table.addHex(hex),
        () => table.addBytes(Buffer.from(hex, "hex")),
        () => table.add(digest),
      ][i % 3]!();
      expect(number === before).toBe(!model.has(digest));
      if (number === before) model.set(digest, number);
      expect(number).toBe(model.get(digest));
    }
    expect(table.size).toBe(model.size);
    for (const [digest, number] of model) expect(table.find(digest as never)).toBe(number);
    expect(table.find(digestJson("test", "never added"))).toBe(-1);
    table.clear();
    expect(table.size).toBe(0);
  }
});

test("digests that share their first bytes, or all but the last, are kept apart", () => {
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32, max: 1 });
  fc.assert(
    fc.property(fc.uniqueArray(bytes, { maxLength: 40, selector: (each) => each.join() }), (list) => {
      const table = new DigestTable();
      const numbers = list.map((each) => table.add(digestFromBytes(each)));
      expect(numbers).toEqual(list.map((_, i) => i));
      expect(list.map((each) => table.find(digestFromBytes(each)))).toEqual(numbers);
    }),
  );
});
