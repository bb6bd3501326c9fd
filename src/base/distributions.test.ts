import { describe, expect, test } from "vitest";
import { drawIndex } from "../../test/support/draw-index.ts";
import { drawBeta, drawGamma, drawNormal } from "./distributions.ts";
import { rngFrom } from "./rng.ts";

const N = 40_000;

describe("distributions", () => {
  test("moments are those of the law, within five standard errors", () => {
    const rng = rngFrom(7);
    const cases: [string, () => number, number, number][] = [
      ["normal", () => drawNormal(rng), 0, 1],
      ["gamma 3.5", () => drawGamma(3.5, rng), 3.5, 3.5],
      ["gamma 0.4", () => drawGamma(0.4, rng), 0.4, 0.4],
      ["beta 2,5", () => drawBeta(2, 5, rng), 2 / 7, 10 / (49 * 8)],
      ["beta 47,12198", () => drawBeta(47, 12198, rng), 47 / 12245, (47 * 12198) / (12245 ** 2 * 12246)],
    ];
    for (const [name, draw, mean, variance] of cases) {
      let sum = 0;
      let squares = 0;
      for (let i = 0; i < N; i++) {
        const x = draw() - mean;
        sum += x;
        squares += x * x;
      }
      expect(Math.abs(sum / N), name).toBeLessThan(5 * Math.sqrt(variance / N));
      expect(Math.abs(squares / N / variance - 1), name).toBeLessThan(0.1);
    }
  });

  test("an index of weight zero is never drawn, and shares follow the weights", () => {
    const rng = rngFrom(1);
    const counts = [0, 0, 0, 0];
    for (let i = 0; i < N; i++) counts[drawIndex(Float64Array.of(9, 0, 1, 3, 0), rng, 1, 4)]!++;
    expect(counts[0]).toBe(0);
    expect(counts[3]).toBe(0);
    expect(Math.abs(counts[1]! / N - 0.25)).toBeLessThan(0.012);
  });
});
