import { describe, expect, it } from "vitest";
import { makeDecisionLog, targetColumns } from "../../../../bench/support/decision-log.ts";
import { handTasks } from "../../../../test/support/sim-tasks.ts";
import { rngFrom } from "../../../base/index.ts";
import { BEHAVIOURS, behaviourRouter, policyOfRouter } from "../play/behaviour.ts";
import { DEFAULT_MODELS, parseModels, skillOf } from "./models.ts";
import { outcomesOf } from "./outcomes.ts";
import { DEFAULT_WEIGHTS } from "./reward.ts";
import { pickCandidate } from "./simulated-model.ts";
import { bestChoices, knownValues, makeWorld, policyValue } from "./world.ts";

const world = makeWorld({ tasks: handTasks(9), models: DEFAULT_MODELS });

describe("exact values", () => {
  it("are those of a model worked out on paper", () => {
    // Skill 0.5, one attempt, no cost: ½ · 1 + ½ · (0.5 + 0 + 0.25) / 3.
    const plain = {
      ...DEFAULT_MODELS[0]!,
      ...{ skill: [0.5], patience: 1, price: { prompt: 0, completion: 0 } },
      latency: { firstMs: 0, tokenMs: 0 },
    };
    const one = makeWorld({ tasks: handTasks(1), models: [plain] });
    expect(one.value(0, 0)).toBeCloseTo(0.5 + 0.125, 12);
    // With a second attempt after failed tests (two mutants of three), repair 0.4:
    // ½ + ½·⅓·0.5 + ½·⅔·(0.4 + 0.6·0.25).
    const patient = makeWorld({ tasks: handTasks(1), models: [{ ...plain, patience: 2, repair: 0.4 }] });
    expect(patient.value(0, 0)).toBeCloseTo(0.5 + 0.25 / 3 + (1 / 3) * (0.4 + 0.15), 12);
    expect(patient.outcomes(0, 0).expected.passes).toBeCloseTo(0.5 + (1 / 3) * 0.4, 12);
  });

  it("lie within four standard errors of Monte Carlo, for every task and model", () => {
    const draws = 4_000;
    for (let task = 0; task < 3; task++)
      for (let model = 0; model < DEFAULT_MODELS.length; model++) {
        const { expected, outcome } = world.outcomes(task, model);
        let [sum, squares] = [0, 0];
        for (let seed = 0; seed < draws; seed++) {
          const { reward } = outcome(seed);
          sum += reward;
          squares += reward * reward;
        }
        const mean = sum / draws;
        const error = Math.sqrt(Math.max(0, squares / draws - mean * mean) / draws);
        expect(Math.abs(mean - expected.reward)).toBeLessThan(4 * error + 1e-9);
      }
  });

  it("order policies: no policy beats the best, and the best beats every single model", () => {
    const known = knownValues(world);
    const values = BEHAVIOURS.map((name) =>
      policyValue(world, policyOfRouter(behaviourRouter(name, { models: names() }))),
    );
    for (const value of [...values, known.uniform, ...Object.values(known.single)])
      expect(value).toBeLessThanOrEqual(known.best + 1e-12);
    expect(known.best).toBeGreaterThan(known.bestSingle.value);
    expect(values[0]).toBeCloseTo(known.uniform, 12);
    expect(values[2]).toBeCloseTo(known.single[names()[0]!]!, 12);
    const choices = bestChoices(world);
    const byChoice = policyValue(world, ({ prompt }) =>
      names().map((_, m) =>
        m === choices[world.contexts.findIndex((each) => each.prompt === prompt)] ? 1 : 0,
      ),
    );
    expect(byChoice).toBeCloseTo(known.best, 12);
  });

  it("make every built-in model the best somewhere, and no single one nearly as good as the best policy", () => {
    const families = ["js-bugfix", "regex-from-examples", "grid-planning"];
    // Prompts as long as generated ones, so that prices affect the reward.
    const tasks = handTasks(15).map(({ task, proof }, n) => ({
      proof,
      task: {
        ...task,
        oracle: { ...task.oracle, family: families[n % 3]!, difficulty: 1 + Math.floor(n / 3) },
        visible: {
          ...task.visible,
          statement: `${task.visible.statement} ${"In other words. ".repeat(150)}`,
        },
      },
    }));
    const known = knownValues(makeWorld({ tasks, models: DEFAULT_MODELS }));
    expect(Object.values(known.bestFor).every((count) => count > 0)).toBe(true);
    expect(known.best - known.bestSingle.value).toBeGreaterThan(0.05);
  });

  it("average over tasks with one prompt, since no policy can tell them apart", () => {
    const [first, second] = handTasks(2) as [never, never];
    const alike = structuredClone([first, second]) as ReturnType<typeof handTasks>;
    (alike[1]!.task as { visible: unknown }).visible = alike[0]!.task.visible;
    const twins = makeWorld({ tasks: alike, models: DEFAULT_MODELS });
    const choices = bestChoices(twins);
    expect(choices[0]).toBe(choices[1]);
  });
});

describe("the digest of a world", () => {
  const [first] = handTasks(1) as [ReturnType<typeof handTasks>[number]];
  const digestOf = (changed: object) =>
    makeWorld({ tasks: [{ ...first, ...changed } as typeof first], models: DEFAULT_MODELS }).digest;

  it("covers solutions and what they do, since outcomes follow from them, and not where they were proved", () => {
    const { task, proof } = first;
    const [mutant, ...others] = task.solutions.mutants;
    const reworded = { "solution.mjs": "export const f = () => 0;\n" };
    const worlds = [
      digestOf({}),
      digestOf({
        task: {
          ...task,
          solutions: { ...task.solutions, mutants: [{ ...mutant, files: reworded }, ...others] },
        },
      }),
      digestOf({ proof: { ...proof, start: { passesVisible: false, hidden: 0.25 } } }),
    ];
    expect(new Set(worlds).size).toBe(3);
    expect(digestOf({ proof: { ...proof, engine: "elsewhere" } })).toBe(worlds[0]);
  });
});

describe("a log of decisions", () => {
  const behaviour = policyOfRouter(behaviourRouter("softmax", { models: names() }));

  it("has the behaviour's probabilities, and rewards that the outcome of each seed gives again", () => {
    const log = makeDecisionLog(world, { behaviour, decisions: 500, rng: rngFrom(3n) });
    for (let row = 0; row < 500; row++) {
      const task = log.task[row]!;
      const model = log.chosen[row]!;
      const probabilities = behaviour(world.contexts[task]!, world.candidates);
      expect(log.propensity[row]).toBe(probabilities[model]);
      const { outcome } = outcomesOf(world.tasks[task]!, world.models[model]!, DEFAULT_WEIGHTS);
      expect(log.reward[row]).toBe(outcome(log.seed[row]!).reward);
    }
  });

  it("is the same for the same seed, and its inverse-propensity mean covers a target's exact value", () => {
    const make = () => makeDecisionLog(world, { behaviour, decisions: 40_000, rng: rngFrom(8n) });
    const log = make();
    expect(make().reward).toEqual(log.reward);
    const target = policyOfRouter(behaviourRouter("epsilon-greedy", { models: names(), epsilon: 0.3 }));
    const { target: probabilities, value } = targetColumns(log, target);
    const terms = log.reward.map((reward, i) => (reward * probabilities[i]!) / log.propensity[i]!);
    const mean = terms.reduce((sum, each) => sum + each, 0) / terms.length;
    const spread = terms.reduce((sum, each) => sum + (each - mean) ** 2, 0) / terms.length;
    expect(Math.abs(mean - value)).toBeLessThan(4 * Math.sqrt(spread / terms.length));
  });
});

describe("declared models", () => {
  it("pick the reference with their skill and every mutant alike", () => {
    const counts = [0, 0, 0, 0];
    for (let i = 0; i < 1000; i++) counts[pickCandidate((i + 0.5) / 1000, 0.4, 4)]!++;
    expect(counts).toEqual([400, 200, 200, 200]);
    expect(pickCandidate(0.999999999, 0, 2)).toBe(1);
  });

  it("have a skill by family and difficulty, harder than the list counts as its end", () => {
    const model = { ...DEFAULT_MODELS[0]!, skill: [0.9, 0.5], families: { sql: [0.7] } };
    expect(skillOf(model, { family: "regex", difficulty: 1 })).toBe(0.9);
    expect(skillOf(model, { family: "regex", difficulty: 9 })).toBe(0.5);
    expect(skillOf(model, { family: "sql", difficulty: 3 })).toBe(0.7);
  });

  it("are read strictly: a typo, a probability past 1 and a doubled name are refused", () => {
    const yaml = (skill: string, extra = "") =>
      `schema: rollbook.sim-models.v1\nmodels:\n  - &m\n    name: a\n    ${skill}\n    repair: 0.5\n    patience: 2\n    price: { prompt: 1, completion: 2 }\n    latency: { firstMs: 1, tokenMs: 1 }\n${extra}`;
    expect(parseModels(yaml("skill: [0.5]"), "m.yaml")).toHaveLength(1);
    expect(() => parseModels(yaml("skil: [0.5]"), "m.yaml")).toThrow(
      /m.yaml: unknown key models.0.skil. Did you mean skill/,
    );
    expect(() => parseModels(yaml("skill: [1.5]"), "m.yaml")).toThrow(/skill/);
    expect(() => parseModels(yaml("skill: [0.5]", "  - *m\n"), "m.yaml")).toThrow(/two models are called a/);
  });
});

function names(): string[] {
  return DEFAULT_MODELS.map(({ name }) => name);
}
