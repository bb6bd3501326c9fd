/** Writes the configuration of the demo into its folder: a loop like any other.
 *  In: a seed and sizes. Out: files. There are three models and three kinds of tasks. Each model is best at one kind,
 *  and a uniform choice loses a quarter of the reward. */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RollbookError } from "../../base/index.ts";
import { makeDirectory } from "../../store/index.ts";
import { type LoopConfig, parseLoopConfig } from "../config.ts";

export interface DemoSize {
  readonly windows: number;
  /** Rollouts per window: an even number, at least 40. */
  readonly rollouts: number;
}

/** Enough held-out rows for the gate to judge window 1 at its default level. */
export const FULL_SIZE: DemoSize = { windows: 4, rollouts: 220 };

/** Rollouts per task and window. */
const SAMPLES = 2;
/** A quarter of the rollouts is used for training: with fewer, a learner would have no rows. */
const LEAST_ROLLOUTS = 40;

const CONFIG_FILE = "loop.yaml";
const MODELS_FILE = "models.yaml";

const MODELS = `schema: rollbook.sim-models.v1
models:
  - name: sim-coder
    skill: [0.15]
    families: { js-bugfix: [0.97, 0.97, 0.95, 0.93, 0.9] }
    repair: 0.2
    patience: 1
    price: { prompt: 0.4, completion: 1.6 }
    latency: { firstMs: 400, tokenMs: 8 }
  - name: sim-thinker
    skill: [0.15]
    families: { word-problems: [0.97, 0.97, 0.95, 0.93, 0.9] }
    repair: 0.2
    patience: 1
    price: { prompt: 0.8, completion: 4 }
    latency: { firstMs: 2000, tokenMs: 12 }
  - name: sim-large
    skill: [0.97, 0.97, 0.95, 0.93, 0.9]
    families: { word-problems: [0.4] }
    repair: 0.6
    patience: 2
    price: { prompt: 3, completion: 15 }
    latency: { firstMs: 1500, tokenMs: 20 }
`;

const loopText = (
  seed: bigint,
  { windows, rollouts }: DemoSize,
) => `# The loop of \`rollbook demo\`. docs/loop.md explains the keys.
run: demo
book: book
replay: replay
world:
  kind: simulator
  tasks: tasks
  models: models.yaml
  generate:
    count: ${rollouts / SAMPLES}
    seed: ${seed}
    families: [js-bugfix, json-transform, word-problems]
  fast: false # programs run in the sandbox
  engine: quickjs
windows: ${windows}
rollouts: ${rollouts}
samples: ${SAMPLES}
learners:
  - { kind: linucb, alpha: 0.1 }
  - { kind: bc }
  - { kind: cql, steps: 1000, hidden: [64] }
  - { kind: ppo }
exploration: { collect: 0.4 }
split: { unit: decision, shares: [0.25, 0, 0.75] }
seed: ${seed}
`;

/** The configuration is written last: a folder without it is no demo. */
export function writeDemo(folder: string, seed: bigint, size: DemoSize): void {
  if (size.rollouts % SAMPLES !== 0 || size.rollouts < LEAST_ROLLOUTS)
    throw new RollbookError(
      "wrong-usage",
      { rollouts: size.rollouts },
      `--rollouts is ${size.rollouts}. Every task of a window runs ${SAMPLES} times, and learners need enough rows. Give an even number of at least ${LEAST_ROLLOUTS}.`,
    );
  makeDirectory(folder);
  writeFileSync(join(folder, MODELS_FILE), MODELS);
  writeFileSync(join(folder, `${CONFIG_FILE}.part`), loopText(seed, size));
  renameSync(join(folder, `${CONFIG_FILE}.part`), join(folder, CONFIG_FILE));
}

export function hasDemo(folder: string): boolean {
  return existsSync(join(folder, CONFIG_FILE));
}

export function readDemo(folder: string): { readonly file: string; readonly config: LoopConfig } {
  const file = join(folder, CONFIG_FILE);
  return { file, config: parseLoopConfig(readFileSync(file, "utf8"), file, folder) };
}
