/** Functions of the learning benchmark: greedy play, and spread over seeds. */
import { type Rng, rngFrom } from "../../src/base/rng.ts";
import { studentQuantile } from "../../src/judge/ope/index.ts";
import type { DecisionEnvironment, PolicyModel } from "../../src/policy/index.ts";
import { answerOf } from "../../src/policy/policy-of.ts";
import { median } from "../support/interleave.ts";

/** Returns of episodes that always take the most likely choice. */
export function playGreedy(model: PolicyModel, make: () => DecisionEnvironment, episodes: number): number[] {
  const answer = answerOf(model);
  const environment = make();
  return Array.from({ length: episodes }, (_, e) => {
    let context = environment.reset(rngFrom(10_000 + e));
    for (let total = 0; ; ) {
      const { probabilities } = answer(context, environment.candidates);
      const {
        reward,
        end,
        context: next,
      } = environment.step(probabilities.indexOf(Math.max(...probabilities)));
      total += reward;
      context = next;
      if (end !== "none") return total;
    }
  });
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}

/** Mean and 95 % interval over seeds, by Student's t. */
export function spread(values: readonly number[]): { mean: number; low: number; high: number; text: string } {
  const mean = meanOf(values);
  const square = values.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  const width =
    values.length < 2
      ? Number.POSITIVE_INFINITY
      : studentQuantile(0.975, values.length - 1) * Math.sqrt(square / (values.length - 1) / values.length);
  const [low, high] = [mean - width, mean + width];
  return { mean, low, high, text: `${mean.toFixed(4)} [${low.toFixed(4)}, ${high.toFixed(4)}]` };
}

export function seedsOf(rng: Rng, count: number): Rng[] {
  return Array.from({ length: count }, (_, seed) => rng.split(seed));
}

export { median };
