/** A small world for training loops: two models, each good at one family of tasks made by hand, and a configuration. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeTasks } from "../../src/collect/sim/prove/task-files.ts";
import { handTasks } from "./sim-tasks.ts";

const FACTS =
  "repair: 0.5, patience: 1, price: { prompt: 1, completion: 2 }, latency: { firstMs: 100, tokenMs: 1 }";

/** A uniform choice is worth about 0.72, the best choice about 0.97. */
const MODELS = `schema: rollbook.sim-models.v1
models:
  - { name: stepper, skill: [0.3], families: { hand-step: [0.98] }, ${FACTS} }
  - { name: curver, skill: [0.98], families: { hand-step: [0.3] }, ${FACTS} }
`;

/** One model is better at every task, so few rollouts show the difference. */
const UNEQUAL_MODELS = `schema: rollbook.sim-models.v1
models:
  - { name: good, skill: [0.9], ${FACTS} }
  - { name: poor, skill: [0.2], ${FACTS} }
`;

export const LOOP = {
  run: "loop",
  book: "book",
  world: { kind: "simulator", tasks: "tasks", models: "models.yaml" } as Record<string, unknown>,
  windows: 3,
  rollouts: 144,
  samples: 4,
  learner: { kind: "linucb", alpha: 0.1 } as Record<string, unknown>,
  split: { unit: "decision", shares: [0.25, 0, 0.75] },
};

/** A loop with half of the rollouts, whose policies still pass the gate. */
export const UNEQUAL = {
  ...LOOP,
  world: { ...LOOP.world, models: "unequal-models.yaml" },
  ...{ rollouts: 72, samples: 3, learner: { kind: "ucb", exploration: 0 } },
  behaviour: { policy: "epsilon-greedy", epsilon: 0.2 },
  split: { unit: "decision", shares: [0.15, 0, 0.85] },
  gate: { epsilonQuality: 0.1 },
};

/** Too few rollouts for a judgement: every window keeps the behaviour policy. */
export const SMALL = { ...LOOP, windows: 2, rollouts: 12, samples: 1, learner: { kind: "ucb" } };

/** Writes tasks, models and loop.yaml. JSON is YAML. */
export function writeLoop(folder: string, config: object = LOOP): string {
  writeTasks(join(folder, "tasks"), handTasks(36));
  writeFileSync(join(folder, "models.yaml"), MODELS);
  writeFileSync(join(folder, "unequal-models.yaml"), UNEQUAL_MODELS);
  return writeConfig(folder, config);
}

export function writeConfig(folder: string, config: object, name = "loop.yaml"): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(config));
  return path;
}
