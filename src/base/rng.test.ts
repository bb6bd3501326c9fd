import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isRollbookError } from "./errors.ts";
import { KeyPrefix, type Rng, rngFrom, splitKey, threefry2x32 } from "./rng.ts";

const seed = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const take = (rng: Rng, count: number): number[] => Array.from({ length: count }, () => rng.u32());
const throwing = (code: string): unknown => expect.toSatisfy((error) => isRollbookError(error, code));

/** Pearson's chi-square statistic of counts with equal expectations. */
function chiSquare(counts: readonly number[]): number {
  const expected = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

describe("threefry2x32", () => {
  // Published known answers of Random123 for threefry2x32 with 20 rounds (kat_vectors).
  it.each([
    ["zeros", [0, 0], [0, 0], [0x6b200159, 0x99ba4efe]],
    ["ones", [0xffffffff, 0xffffffff], [0xffffffff, 0xffffffff], [0x1cb996fc, 0xbb002be7]],
    ["digits of pi", [0x13198a2e, 0x03707344], [0x243f6a88, 0x85a308d3], [0xc4923a9c, 0x483df7a0]],
  ] as const)("gives the published answer for %s", (_name, key, counter, answer) => {
    expect(threefry2x32(key, counter)).toEqual(answer);
  });
});

describe("rngFrom", () => {
  it("gives the stream that fixtures/rng-stream.py, a second implementation, gives", () => {
    const rng = rngFrom(42);
    expect(take(rng, 5)).toEqual([3732534457, 1332528664, 646961260, 4263843367, 2234760234]);
    expect([rng.float(), rng.float(), rng.float()]).toEqual([
      0.1064724270249705, 0.86067957895308, 0.04035259234453181,
    ]);
    expect(Array.from({ length: 12 }, () => rng.below(10))).toEqual([6, 6, 5, 3, 7, 5, 8, 8, 3, 1, 5, 1]);
    expect(Array.from({ length: 3 }, () => rng.below(2 ** 31 + 1))).toEqual([
      896844053, 1532797651, 1855476965,
    ]);
    expect(rng.u64()).toBe(7504898237611315190n);
    expect(rng.shuffle([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])).toEqual([7, 6, 0, 2, 5, 9, 8, 1, 3, 4]);
    expect(rngFrom(42).split(7).u32()).toBe(2905533558);
    expect(
      rngFrom(42)
        .split(2 ** 40)
        .u32(),
    ).toBe(1760516128);
    expect(rngFrom(42).split("worker-é").u32()).toBe(3168704273);
    expect(rngFrom(2n ** 64n - 1n).u32()).toBe(1094285764);
  });

  it("gives one stream per seed, the same for a number and a bigint", () => {
    fc.assert(
      fc.property(seed, seed, (a, b) => {
        fc.pre(a !== b);
        expect(take(rngFrom(a), 4)).toEqual(take(rngFrom(a), 4));
        expect(take(rngFrom(a), 4)).not.toEqual(take(rngFrom(b), 4));
      }),
    );
    expect(take(rngFrom(7), 4)).toEqual(take(rngFrom(7n), 4));
  });

  it.each([-1, 1.5, Number.NaN, 2 ** 53, -1n, 2n ** 64n])("refuses the seed %s", (bad) => {
    expect(() => rngFrom(bad)).toThrowError(throwing("bad-seed"));
  });
});

describe("float", () => {
  it("lies in [0, 1) and fills it evenly", () => {
    const rng = rngFrom(1);
    const counts = new Array<number>(64).fill(0);
    for (let i = 0; i < 64_000; i++) {
      const value = rng.float();
      expect(value >= 0 && value < 1).toBe(true);
      counts[Math.floor(value * 64)]!++;
    }
    expect(chiSquare(counts)).toBeLessThan(120); // 63 degrees of freedom: p < 1e-5
  });
});

describe("below", () => {
  it("stays under its bound", () => {
    fc.assert(
      fc.property(seed, fc.integer({ min: 1, max: 2 ** 32 }), (from, bound) => {
        const value = rngFrom(from).below(bound);
        expect(Number.isInteger(value) && value >= 0 && value < bound).toBe(true);
      }),
    );
  });

  it.each([2, 3, 7, 10, 100])("draws each of %i values equally often", (bound) => {
    const rng = rngFrom(3);
    const counts = new Array<number>(bound).fill(0);
    for (let i = 0; i < bound * 2_000; i++) counts[rng.below(bound)]!++;
    expect(chiSquare(counts)).toBeLessThan(bound + 6 * Math.sqrt(2 * bound));
  });

  it("has no modulo bias where it would be plainest, at a bound of 3 · 2^30", () => {
    // word % bound would give the lowest third of the values half of all draws.
    const rng = rngFrom(5);
    let low = 0;
    for (let i = 0; i < 30_000; i++) if (rng.below(3 * 2 ** 30) < 2 ** 30) low++;
    expect(low / 30_000).toBeGreaterThan(0.32);
    expect(low / 30_000).toBeLessThan(0.347);
  });

  it.each([0, -1, 1.5, Number.NaN, 2 ** 32 + 1])("refuses the bound %s", (bound) => {
    expect(() => rngFrom(0).below(bound)).toThrowError(throwing("bad-bound"));
  });
});

describe("shuffle", () => {
  it("a seed fixes the order, and no item is lost", () => {
    fc.assert(
      fc.property(seed, fc.array(fc.integer()), (from, items) => {
        const shuffled = rngFrom(from).shuffle([...items]);
        expect(shuffled).toEqual(rngFrom(from).shuffle([...items]));
        expect([...shuffled].sort((a, b) => a - b)).toEqual([...items].sort((a, b) => a - b));
      }),
    );
  });

  it("gives all 24 orders of four items equally often", () => {
    const rng = rngFrom(11);
    const counts = new Map<string, number>();
    for (let i = 0; i < 24_000; i++) {
      const order = rng.shuffle([0, 1, 2, 3]).join("");
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect(counts.size).toBe(24);
    expect(chiSquare([...counts.values()])).toBeLessThan(60); // 23 degrees of freedom: p < 1e-4
  });
});

describe("split", () => {
  it("does not depend on what was drawn from the parent, nor on other splits", () => {
    fc.assert(
      fc.property(seed, fc.nat(50), fc.oneof(fc.nat(), fc.string()), (from, draws, key) => {
        const parent = rngFrom(from);
        take(parent, draws);
        take(parent.split("another"), 3);
        expect(take(parent.split(key), 4)).toEqual(take(rngFrom(from).split(key), 4));
      }),
    );
  });

  it("does not disturb the parent", () => {
    const parent = rngFrom(9);
    parent.u32();
    parent.split(1).u32();
    expect(parent.u32()).toBe(take(rngFrom(9), 2)[1]);
  });

  it("gives every key, every level and the parent a stream of its own", () => {
    const root = rngFrom(1);
    const streams = [root, root.split(0), root.split(0).split(0), root.split("0"), root.split("")];
    for (let i = 1; i < 500; i++) streams.push(root.split(i), root.split(`k${i}`), root.split(2 ** 32 * i));
    expect(new Set(streams.map((stream) => take(stream, 2).join())).size).toBe(streams.length);
  });

  it("children are not shifted copies of their parent or of each other", () => {
    const words = [rngFrom(1), rngFrom(1).split(0), rngFrom(1).split(1)].flatMap((rng) => take(rng, 2_000));
    expect(new Set(words).size).toBeGreaterThan(5_990); // about 0.004 collisions by chance
  });

  it.each([-1, 0.5, 2 ** 53])("refuses the key %s", (key) => {
    expect(() => rngFrom(0).split(key)).toThrowError(throwing("bad-split"));
  });
});

describe("splitKey", () => {
  it("gives names that differ in a digit numbers of their own, and even first draws", () => {
    const root = rngFrom(3);
    const names = Array.from({ length: 40_000 }, (_, i) => `r-${i % 400}.${Math.floor(i / 400)}`);
    const keys = names.map(splitKey);
    expect(new Set(keys).size).toBe(names.length);
    const counts = new Array<number>(16).fill(0);
    for (const key of keys) counts[Math.floor(16 * root.split(key).float())]!++;
    expect(chiSquare(counts)).toBeLessThan(44); // 15 degrees of freedom: p < 1e-4
  });

  it("is the same for a name in two parts", () => {
    const text = fc.string({ unit: "binary" });
    fc.assert(
      fc.property(text, text, (beginning, rest) => {
        expect(new KeyPrefix(beginning).key(rest)).toBe(splitKey(beginning + rest));
      }),
    );
    // Golden: the draws of recorded decisions depend on it.
    expect(splitKey("r-0001.2")).toBe(8_491_406_417_473_488);
  });

  it("is a key that split takes, whatever the name", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (name) => {
        expect(take(rngFrom(1).split(splitKey(name)), 1)).toHaveLength(1);
      }),
    );
  });
});
