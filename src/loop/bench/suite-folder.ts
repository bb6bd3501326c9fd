/** Defines the layout of the folder of a suite's run, and reads it back. The folder holds everything that a result
 *  depends on. */
import { join } from "node:path";
import { rngFrom } from "../../base/index.ts";
import {
  DEFAULT_MODELS,
  makeWorld,
  type ProvedTask,
  parseModels,
  readTasks,
  type SimWorld,
} from "../../collect/sim/index.ts";
import { readText } from "../../store/index.ts";
import type { Suite } from "./suite.ts";

export const SUITE_FILE = "suite.yaml";
export const RESULT_FILE = "results.json";
export const MODELS_FILE = "models.yaml";
export const TASKS_FOLDER = "tasks";
/** Folder of the arms' answers in each cell of an ablation. */
export const CELLS_FOLDER = "cells";

export const logFile = (repetition: number) => `log-${repetition}.jsonl`;
export const checkpointFolder = (arm: string, repetition: number) => `checkpoints/${arm}-${repetition}`;

export interface SuiteWorlds {
  readonly train: SimWorld;
  readonly heldOut: SimWorld;
  readonly all: SimWorld;
}

/** One half of the tasks is for training, the other is held out; the seed decides the halves. */
export function worldsOf(suite: Suite, folder: string): SuiteWorlds {
  const models =
    suite.models === undefined
      ? DEFAULT_MODELS
      : parseModels(readText(join(folder, MODELS_FILE), "models"), MODELS_FILE);
  const tasks = readTasks(join(folder, TASKS_FOLDER));
  const world = (own: readonly ProvedTask[]) =>
    makeWorld({ tasks: own, models, ...(suite.reward === undefined ? {} : { weights: suite.reward }) });
  const shuffled = rngFrom(BigInt(suite.seed))
    .split("halves")
    .shuffle([...tasks]);
  const half = Math.floor(shuffled.length / 2);
  return { train: world(shuffled.slice(0, half)), heldOut: world(shuffled.slice(half)), all: world(tasks) };
}
