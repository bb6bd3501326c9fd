import { expect, it } from "vitest";
import { type Rng, rngFrom } from "../../base/index.ts";
import { differenceOverTasks, pairedDifference } from "./index.ts";

const normal = (rng: Rng) => Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());

/** Cells around a known mean, with variation by task, by repetition and by cell. */
function cellsOf(rng: Rng, { tasks, repetitions }: { tasks: number; repetitions: number }): number[][] {
  const byTask = Array.from({ length: tasks }, () => 0.2 * normal(rng));
  return Array.from({ length: repetitions }, () => {
    const shift = 0.05 * normal(rng);
    return byTask.map((each) => 0.1 + each + shift + 0.1 * normal(rng));
  });
}

it("covers the true difference in at least 94 % of 2 000 worlds, and is not twice as wide as it must be", () => {
  const rng = rngFrom(5n);
  const [tasks, repetitions] = [60, 5];
  let hits = 0;
  let width = 0;
  for (let i = 0; i < 2000; i++) {
    const { low, high } = pairedDifference(cellsOf(rng, { tasks, repetitions }));
    if (low <= 0.1 && 0.1 <= high) hits++;
    width += (high - low) / 2000;
  }
  const error = Math.sqrt(0.2 ** 2 / tasks + 0.05 ** 2 / repetitions + 0.1 ** 2 / (tasks * repetitions));
  expect(hits / 2000).toBeGreaterThanOrEqual(0.94);
  expect(width).toBeLessThan(2 * 2 * 1.96 * error);
});

it("is the Student interval over tasks where one repetition is given", () => {
  const { mean, low, high } = differenceOverTasks([1, 2, 3, 4]);
  // t(0.975, 3) = 3.18245, standard error sqrt(5/3)/2.
  expect(mean).toBe(2.5);
  expect(high - mean).toBeCloseTo(3.182446 * Math.sqrt(5 / 12), 5);
  expect(mean - low).toBeCloseTo(high - mean, 12);
});

it("refuses fewer than two repetitions", () => {
  expect(() => pairedDifference([[1, 2, 3]])).toThrow(/at least two/);
});
