/** Runs a suite: draws and proves tasks, draws a log for each repetition, trains every arm on it, measures.
 *  In: a suite and an empty folder. Out: the result; the folder then holds everything that the result depends on. Arms
 *  are isolated: each learns from the same log into a checkpoint of its own. */
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalize, manualClock, rngFrom } from "../../base/index.ts";
import { generateTaskFolder } from "../../book/sim/index.ts";
import { trainPolicy } from "../../book/train/index.ts";
import { DIFFICULTIES, type Difficulty, type SimWorld } from "../../collect/sim/index.ts";
import { toRoutingRow } from "../../convert/index.ts";
import type { BenchResult } from "../../judge/bench/index.ts";
import { DEFAULT_SPLIT, type LoggedRow, TRAIN_ON_ALL } from "../../learn/index.ts";
import { makeDirectory } from "../../store/index.ts";
import { learnerOf } from "../learner.ts";
import { drawLog } from "./draw-log.ts";
import { behaviourOf, measureSuite } from "./measure-suite.ts";
import type { Suite } from "./suite.ts";
import {
  checkpointFolder,
  logFile,
  MODELS_FILE,
  RESULT_FILE,
  SUITE_FILE,
  TASKS_FOLDER,
  worldsOf,
} from "./suite-folder.ts";

/** Held-out tasks are already separate, so the whole log is used for training. */
const TAKE_ALL = { ...DEFAULT_SPLIT, shares: TRAIN_ON_ALL };

export interface RunSuiteOptions {
  /** Folder of the run, created if missing; it must not hold a run yet. */
  readonly folder: string;
  /** Original text of the suite. */
  readonly source: string;
  /** Number of programs that run at the same time while tasks are proved. */
  readonly workers?: number;
  readonly log?: (line: string) => void;
}

export async function runSuite(suite: Suite, options: RunSuiteOptions): Promise<BenchResult> {
  const { folder, log = () => {} } = options;
  await beginSuiteFolder(suite, options);
  const { train } = worldsOf(suite, folder);
  for (let index = 0; index < suite.repetitions; index++) {
    const data = join(folder, logFile(index));
    writeLog(data, drawTrainingLog(suite, train, index));
    await trainArms(suite, { data, index, outOf: (name) => join(folder, checkpointFolder(name, index)) });
    log(`repetition ${index + 1} of ${suite.repetitions}: every arm is trained`);
  }
  const result = await measureSuite(suite, folder);
  writeFileSync(join(folder, RESULT_FILE), `${canonicalize(result)}\n`, { flag: "wx" });
  return result;
}

/** Writes the inputs of a suite: its source, models and tasks. */
export async function beginSuiteFolder(suite: Suite, options: RunSuiteOptions): Promise<void> {
  const { folder, source } = options;
  makeDirectory(folder);
  writeFileSync(join(folder, SUITE_FILE), source, { flag: "wx" });
  if (suite.models !== undefined) copyFileSync(suite.models, join(folder, MODELS_FILE));
  await bringTasks(suite, options);
}

async function bringTasks({ tasks }: Suite, { folder, workers = 2, log }: RunSuiteOptions): Promise<void> {
  const out = join(folder, TASKS_FOLDER);
  if ("folder" in tasks) {
    makeDirectory(out);
    for (const file of ["tasks.jsonl", "solutions.jsonl", "packages.jsonl", "tasks.meta.json"])
      copyFileSync(join(tasks.folder, file), join(out, file));
    return;
  }
  const { count, seed, families, difficulties = DIFFICULTIES, engine } = tasks;
  await generateTaskFolder({
    ...{ out, count, seed: BigInt(seed), families, engine, workers, prove: true },
    difficulties: difficulties as readonly Difficulty[],
  });
  log?.(`${count} tasks drawn and checked: the reference solution passes, wrong ones fail`);
}

/** Decisions that the arms of a repetition learn from. A shorter log of the same suite begins with the same rows. */
export function drawTrainingLog(suite: Suite, train: SimWorld, index: number): LoggedRow[] {
  return drawLog(train, {
    behaviour: behaviourOf(suite, train),
    decisions: suite.train.decisions,
    rng: rngFrom(BigInt(suite.seed)).split(`log ${index}`),
  });
}

export function writeLog(data: string, rows: readonly LoggedRow[]): void {
  writeFileSync(data, rows.map((row) => `${JSON.stringify(toRoutingRow(row))}\n`).join(""), { flag: "wx" });
}

/** `outOf`: folder of the checkpoint of each arm. */
export async function trainArms(
  suite: Suite,
  { data, index, outOf }: { data: string; index: number; outOf: (arm: string) => string },
): Promise<void> {
  for (const { name, learner } of suite.arms)
    await trainPolicy(
      { data },
      {
        ...{ learner: learnerOf(learner), id: `${suite.suite}-${name}-${index}`, split: TAKE_ALL },
        ...{ seed: BigInt(suite.seed + index), out: outOf(name) },
        // A result names its checkpoints by digest, so they must not depend on the time of their creation.
        clock: manualClock(0),
        // These policies are never explained, and packs of earlier versions must give the same digests.
        usual: false,
      },
    );
}
