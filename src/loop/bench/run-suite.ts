/** Runs a suite: draws and proves tasks, draws a log for each repetition, trains every arm on it, measures.
 *  In: a suite and an empty folder. Out: the result; the folder then holds everything that it rests on.
 *  Arms are isolated: each learns from the same log into a checkpoint of its own. */
import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { canonicalize, manualClock, rngFrom } from "../../base/index.ts";
import { generateTaskFolder } from "../../book/sim/index.ts";
import { trainPolicy } from "../../book/train/index.ts";
import { DIFFICULTIES, type Difficulty } from "../../collect/sim/index.ts";
import { toRoutingRow } from "../../convert/index.ts";
import type { BenchResult } from "../../judge/bench/index.ts";
import { DEFAULT_SPLIT, TRAIN_ON_ALL } from "../../learn/index.ts";
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

/** Held-out tasks are apart already: a log is learned from whole. */
const TAKE_ALL = { ...DEFAULT_SPLIT, shares: TRAIN_ON_ALL };

interface RunSuiteOptions {
  /** Created if it is missing; must not hold a run yet. */
  readonly folder: string;
  /** The suite as it was written. */
  readonly source: string;
  /** Programs at a time while tasks are proved. */
  readonly workers?: number;
  readonly log?: (line: string) => void;
}

export async function runSuite(suite: Suite, options: RunSuiteOptions): Promise<BenchResult> {
  const { folder, source, log = () => {} } = options;
  makeDirectory(folder);
  writeFileSync(join(folder, SUITE_FILE), source, { flag: "wx" });
  if (suite.models !== undefined) copyFileSync(suite.models, join(folder, MODELS_FILE));
  await bringTasks(suite, options);
  for (let index = 0; index < suite.repetitions; index++) {
    await trainArms(suite, folder, index);
    log(`repetition ${index + 1} of ${suite.repetitions}: every arm is trained`);
  }
  const result = await measureSuite(suite, folder);
  writeFileSync(join(folder, RESULT_FILE), `${canonicalize(result)}\n`, { flag: "wx" });
  return result;
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
  log?.(`${count} tasks drawn and proved`);
}

async function trainArms(suite: Suite, folder: string, index: number): Promise<void> {
  const { train } = worldsOf(suite, folder);
  const rows = drawLog(train, {
    behaviour: behaviourOf(suite, train),
    decisions: suite.train.decisions,
    rng: rngFrom(BigInt(suite.seed)).split(`log ${index}`),
  });
  const data = join(folder, logFile(index));
  writeFileSync(data, rows.map((row) => `${JSON.stringify(toRoutingRow(row))}\n`).join(""), { flag: "wx" });
  for (const { name, learner } of suite.arms)
    await trainPolicy(
      { data },
      {
        ...{ learner: learnerOf(learner), id: `${suite.suite}-${name}-${index}`, split: TAKE_ALL },
        ...{ seed: BigInt(suite.seed + index), out: join(folder, checkpointFolder(name, index)) },
        // A result names its checkpoints by digest, so nothing in them may depend on when they were made.
        clock: manualClock(0),
        // Nobody asks them why, and packs of earlier versions must give their digests again.
        usual: false,
      },
    );
}
