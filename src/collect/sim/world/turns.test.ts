import { describe, expect, test } from "vitest";
import { handTasks } from "../../../../test/support/sim-tasks.ts";
import { rngFrom } from "../../../base/index.ts";
import { DEFAULT_MODELS } from "./models.ts";
import { bestTurnValues, turnEnvironment, turnPolicyValue } from "./turns.ts";
import { knownValues, makeWorld, policyValue } from "./world.ts";

const world = makeWorld({ tasks: handTasks(3), models: DEFAULT_MODELS });
const always = (m: number) => () => DEFAULT_MODELS.map((_, i) => (i === m ? 1 : 0));

describe("routing at every turn", () => {
  test("with one model for all turns is worth what one decision for it is", () => {
    for (const [m] of DEFAULT_MODELS.entries())
      expect(turnPolicyValue(world, always(m))).toBeCloseTo(policyValue(world, always(m)), 12);
  });

  test("its optimum is at least that of one decision, and seeing less is worth no more", () => {
    const { best, bestSeen } = bestTurnValues(world);
    expect(best).toBeGreaterThanOrEqual(bestSeen - 1e-12);
    expect(bestSeen).toBeGreaterThanOrEqual(knownValues(world).best - 1e-12);
  });

  test("of a world worked out by hand: the cheap twin tries, and the free one submits", () => {
    const model = DEFAULT_MODELS[4]!;
    const free = { prompt: 0, completion: 0 };
    const latency = { firstMs: 0, tokenMs: 0 };
    const sure = { ...model, name: "sure", skill: [1], families: {}, latency };
    const idle = { ...model, name: "idle", skill: [0], families: {}, price: free, latency, patience: 1 };
    const two = makeWorld({ tasks: handTasks(1), models: [sure, idle] });
    // `sure` solves the task with its first attempt; `idle` then submits at no cost.
    const begun = two.outcomes(0, 0).expected;
    const { best, bestSeen } = bestTurnValues(two);
    expect(best).toBeGreaterThan(begun.reward);
    expect(bestSeen).toBeCloseTo(best, 12);
    const switching = turnPolicyValue(two, ({ fields }) => (fields.messages === 2 ? [1, 0] : [0, 1]));
    expect(switching).toBeCloseTo(best, 12);
  });

  test("playing it has the outcome of a rollout of that seed, and on average the exact value", () => {
    const environment = turnEnvironment(world);
    const play = (seed: number): number => {
      environment.reset(rngFrom(seed));
      for (;;) {
        const { reward, end } = environment.step(1);
        if (end !== "none") return reward;
      }
    };
    expect(play(5)).toBe(play(5));
    const rewards = Array.from({ length: 3000 }, (_, seed) => play(seed));
    const mean = rewards.reduce((sum, each) => sum + each, 0) / rewards.length;
    expect(mean).toBeCloseTo(turnPolicyValue(world, always(1)), 1);
    const rng = rngFrom(5);
    const task = rng.below(world.tasks.length);
    expect(play(5)).toBeCloseTo(world.outcomes(task, 1).outcome(rng.u32()).reward, 12);
  });
});
