import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { exp, log, log1p, softmax } from "./exact-math.ts";

/** Arguments with results rounded from 80 decimal digits (Python's decimal module). */
const EXP: readonly (readonly [number, number])[] = [
  [1, Math.E],
  [-1, 0.36787944117144233],
  [0.5, 1.6487212707001282],
  [2.5, 12.182493960703473],
  [10, 22026.465794806718],
  [-20.25, 1.6052280551856116e-9],
  [100, 2.6881171418161356e43],
  [700, 1.0142320547350045e304],
  [-700, 9.85967654375977e-305],
  [1e-9, 1.000000001],
  [-744.5, 5e-324],
  [0.3465, 1.4141094938303624],
];
const LOG: readonly (readonly [number, number])[] = [
  [2, Math.LN2],
  [0.5, -Math.LN2],
  [10, Math.LN10],
  [0.3, -1.2039728043259361],
  [1.0000001, 9.999999505838704e-8],
  [0.9999, -0.00010000500033334732],
  [1e300, 690.7755278982137],
  [1e-300, -690.7755278982137],
  [5e-324, -744.4400719213812],
  [Math.SQRT2, 0.3465735902799727],
];

describe("exact math", () => {
  test("exp and log are within one unit in the last place of the true value", () => {
    for (const [x, y] of EXP) expect(ulps(exp(x), y), `exp(${x})`).toBeLessThanOrEqual(1);
    for (const [x, y] of LOG) expect(ulps(log(x), y), `log(${x})`).toBeLessThanOrEqual(1);
  });

  test("a sweep of 20 000 arguments gives the bits of fdlibm, whatever the engine", () => {
    // Digests of the same sweep under V8 11.3's C++ port of fdlibm (Math.exp and Math.log of Node 20).
    expect(sweep(exp, (i) => (i - 10_000) * 0.0708)).toBe(EXP_SWEEP);
    expect(sweep(log, (i) => (i + 1) * (i + 1) * (i + 1) * 1.37e-7)).toBe(LOG_SWEEP);
  });

  test("edges follow IEEE 754", () => {
    expect([exp(Number.NEGATIVE_INFINITY), exp(0), exp(710), exp(-746)]).toEqual([
      0,
      1,
      Number.POSITIVE_INFINITY,
      0,
    ]);
    expect([log(0), log(1), log(-1), log(Number.POSITIVE_INFINITY)]).toEqual([
      Number.NEGATIVE_INFINITY,
      0,
      Number.NaN,
      Number.POSITIVE_INFINITY,
    ]);
    expect(exp(Number.NaN)).toBeNaN();
  });

  test("log1p keeps what 1 + x would lose", () => {
    for (const x of [1e-300, -1e-17, 3e-9, -0.5, 0.7, 40]) {
      expect(Math.abs(log1p(x) / Math.log1p(x) - 1)).toBeLessThan(4e-16);
    }
    expect(log1p(0)).toBe(0);
  });

  test("softmax neither overflows nor loses mass", () => {
    const p = softmax(Float64Array.of(9, 1000, 999, 9), 1, 2);
    expect(p[0]! + p[3]!).toBe(18);
    expect(p[1]! + p[2]!).toBeCloseTo(1, 15);
    expect(p[1]).toBeCloseTo(0.7310585786300049, 15);
  });
});

const EXP_SWEEP = "96b08cc98a9da46cbee4a3b50e9e54c970d12e87adf09cc41c1c87acc161ece0";
const LOG_SWEEP = "44b9eedfbe51299d422b97870592940d991e2a4da16f759d011302a7066f1fa7";

function sweep(f: (x: number) => number, at: (i: number) => number): string {
  const out = Float64Array.from({ length: 20_000 }, (_, i) => f(at(i)));
  return createHash("sha256").update(new Uint8Array(out.buffer)).digest("hex");
}

function ulps(a: number, b: number): number {
  const bits = new BigInt64Array(Float64Array.of(a, b).buffer);
  return Math.abs(Number(bits[0]! - bits[1]!));
}
