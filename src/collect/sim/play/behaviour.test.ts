import { describe, expect, it } from "vitest";
import { handTasks } from "../../../../test/support/sim-tasks.ts";
import { DEFAULT_MODELS } from "../world/models.ts";
import { makeWorld } from "../world/world.ts";
import { BEHAVIOURS, behaviourRouter, chooseWith, policyOfRouter } from "./behaviour.ts";

const world = makeWorld({ tasks: handTasks(1), models: DEFAULT_MODELS });
const models = DEFAULT_MODELS.map(({ name }) => name);
const context = world.contexts[0]!;
const at = (messages: number) => ({ ...context, fields: { ...context.fields, messages } });

describe("a behaviour policy at the gateway", () => {
  it.each(BEHAVIOURS)("%s logs the distribution that its exact value is computed from", (behaviour) => {
    const router = behaviourRouter(behaviour, { models });
    const { decision } = chooseWith(
      router,
      1n,
    )({
      ...{ alias: "auto", context, candidates: world.candidates, seed: 3 },
    });
    expect(decision.probabilities).toEqual(policyOfRouter(router)(context, world.candidates));
  });

  it("draws by seed and turn: the same again for the same question, independently for the next call", () => {
    const choose = chooseWith(behaviourRouter("uniform", { models }), 1n);
    const chosen = (seed: number, messages: number) =>
      choose({ alias: "auto", context: at(messages), candidates: world.candidates, seed }).decision.chosen;
    const seeds = Array.from({ length: 4000 }, (_, seed) => seed);
    expect(seeds.map((seed) => chosen(seed, 2))).toEqual(seeds.map((seed) => chosen(seed, 2)));
    // Two uniform draws among five agree with probability 1/5. The tolerance is five standard errors.
    const agree = seeds.filter((seed) => chosen(seed, 2) === chosen(seed, 4)).length / seeds.length;
    expect(Math.abs(agree - 0.2)).toBeLessThan(5 * Math.sqrt((0.2 * 0.8) / seeds.length));
  });
});
