/** Makes one table of many runs: reward weights × training decisions × arms × floors, all on the tasks of one suite.
 *  In: a suite and the values to vary. Out: a row for each combination, and a folder from which the table follows. Runs
 *  share work: tasks are drawn once, a short log is the beginning of the long one, and a floor needs no training of its
 *  own. The folder keeps the answers of the arms, because checkpoints are large. Logs can be drawn again from the tasks
 *  and the seed. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalize, RollbookError } from "../../base/index.ts";
import { DEFAULT_WEIGHTS } from "../../collect/sim/index.ts";
import type { Ablation, AblationResult, AblationRow } from "../../judge/bench/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { type AskedRepetition, askArms, type MeasuredArm, resultOf } from "./measure-suite.ts";
import { beginSuiteFolder, drawTrainingLog, type RunSuiteOptions, trainArms, writeLog } from "./run-suite.ts";
import type { Suite } from "./suite.ts";
import { CELLS_FOLDER, RESULT_FILE, type SuiteWorlds, worldsOf } from "./suite-folder.ts";

/** One reward and one dataset size. */
interface AblationCell {
  readonly decisions: number;
  readonly costWeight: number;
  readonly latencyWeight: number;
}

export async function ablate(
  suite: Suite,
  varied: Ablation,
  options: RunSuiteOptions,
): Promise<AblationResult> {
  requireVariations(varied);
  const { folder, log } = options;
  await beginSuiteFolder(suite, options);
  mkdirSync(join(folder, CELLS_FOLDER));
  for (const reward of rewardsOf(varied)) {
    const longest = cellSuite(suite, { ...reward, decisions: Math.max(...varied.decisions) });
    const worlds = worldsOf(longest, folder);
    const asked = new Map<number, AskedRepetition[]>(varied.decisions.map((each) => [each, []]));
    for (let index = 0; index < suite.repetitions; index++) {
      const rows = drawTrainingLog(longest, worlds.train, index);
      for (const decisions of varied.decisions) {
        const repetition = { worlds, index, rows: rows.slice(0, decisions), floors: varied.floors };
        asked.get(decisions)!.push(await askTrained(suite, repetition));
      }
      log?.(`${nameOfReward(reward)}: repetition ${index + 1} of ${suite.repetitions}`);
    }
    for (const [decisions, answers] of asked)
      writeFileSync(cellFile(folder, { ...reward, decisions }), `${canonicalize(answers)}\n`, { flag: "wx" });
  }
  const result = measureAblation(suite, varied, folder);
  writeFileSync(join(folder, RESULT_FILE), `${canonicalize(result)}\n`, { flag: "wx" });
  return result;
}

/** Computes the table from the tasks of a folder and the answers of the arms in it. Trains nothing. */
export function measureAblation(suite: Suite, varied: Ablation, folder: string): AblationResult {
  const arms = armsBehindFloors(suite, varied.floors);
  const rows: AblationRow[] = [];
  let tasks = { train: 0, heldOut: 0 };
  for (const reward of rewardsOf(varied)) {
    const worlds = worldsOf(cellSuite(suite, { ...reward, decisions: 0 }), folder);
    tasks = { train: worlds.train.tasks.length, heldOut: worlds.heldOut.tasks.length };
    for (const decisions of varied.decisions) {
      const cell = { ...reward, decisions };
      const result = resultOf(cellSuite(suite, cell), { worlds, arms, asked: readCell(folder, cell) });
      const { best, bestSingle } = result.known;
      for (const { name, learner, floor, checkpoints, exact, gapClosed, versus, costVersus } of result.arms)
        rows.push({
          ...{ ...cell, best, bestSingle },
          arm: { name, learner, floor, checkpoints, exact, gapClosed, versus, costVersus },
        });
    }
  }
  return {
    schema: "rollbook.bench-ablation.v1",
    suite: { name: suite.suite, digest: suite.digest },
    ...{ tasks, repetitions: suite.repetitions, varied, rows },
  };
}

/** Yields every cell with its answers, and the log that each repetition should name, drawn again. */
export function* cellsOf(
  suite: Suite,
  varied: Ablation,
  folder: string,
): Generator<{ name: string; asked: readonly AskedRepetition[]; logOf: (index: number) => LoggedRow[] }> {
  for (const reward of rewardsOf(varied)) {
    const longest = cellSuite(suite, { ...reward, decisions: Math.max(...varied.decisions) });
    const { train } = worldsOf(longest, folder);
    for (const decisions of varied.decisions) {
      const cell = { ...reward, decisions };
      yield {
        name: nameOfCell(cell),
        asked: readCell(folder, cell),
        logOf: (index) => drawTrainingLog(longest, train, index).slice(0, decisions),
      };
    }
  }
}

/** Trains every arm once and asks it with each floor. */
async function askTrained(
  suite: Suite,
  {
    worlds,
    index,
    rows,
    floors,
  }: { worlds: SuiteWorlds; index: number; rows: readonly LoggedRow[]; floors: readonly number[] },
): Promise<AskedRepetition> {
  const work = mkdtempSync(join(tmpdir(), "rollbook-ablate-"));
  const outOf = (name: string) => join(work, name);
  try {
    const data = join(work, "log.jsonl");
    writeLog(data, rows);
    await trainArms(suite, { data, index, outOf });
    return await askArms(armsBehindFloors(suite, floors), worlds.heldOut, { data, checkpointOf: outOf });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function armsBehindFloors(suite: Suite, floors: readonly number[]): MeasuredArm[] {
  return suite.arms.flatMap(({ name, learner }) =>
    floors.map((floor) => ({
      ...{ learner: learner.kind, floor, trained: name },
      name: floors.length === 1 ? name : `${name}-floor-${String(floor).replaceAll(".", "")}`,
    })),
  );
}

function rewardsOf({ costWeights, latencyWeights }: Ablation): Omit<AblationCell, "decisions">[] {
  return costWeights.flatMap((costWeight) =>
    latencyWeights.map((latencyWeight) => ({ costWeight, latencyWeight })),
  );
}

/** Suite with the reward and the dataset size of a cell. */
function cellSuite(suite: Suite, { decisions, costWeight, latencyWeight }: AblationCell): Suite {
  const { cost, latency } = suite.reward ?? DEFAULT_WEIGHTS;
  return {
    ...suite,
    reward: {
      cost: { ...cost, weight: cost.weight * costWeight },
      latency: { ...latency, weight: latency.weight * latencyWeight },
    },
    train: { ...suite.train, decisions },
  };
}

function nameOfReward({ costWeight, latencyWeight }: Omit<AblationCell, "decisions">): string {
  return `cost-${costWeight}-latency-${latencyWeight}`;
}

function nameOfCell(cell: AblationCell): string {
  return `${nameOfReward(cell)}-decisions-${cell.decisions}`;
}

function cellFile(folder: string, cell: AblationCell): string {
  return join(folder, CELLS_FOLDER, `${nameOfCell(cell)}.json`);
}

function readCell(folder: string, cell: AblationCell): AskedRepetition[] {
  return JSON.parse(readFileSync(cellFile(folder, cell), "utf8")) as AskedRepetition[];
}

function requireVariations({ decisions, floors, costWeights, latencyWeights }: Ablation): void {
  const fault =
    fewOrTwice({ decisions, floors, costWeights, latencyWeights }) ??
    (decisions.some((each) => !Number.isInteger(each) || each < 10)
      ? "decisions must be whole numbers of 10 or more"
      : floors.some((each) => each > 1)
        ? "confidence floors must lie between 0 and 1"
        : undefined);
  if (fault !== undefined)
    throw new RollbookError("bad-variation", { fault }, `${fault}. Correct the list. See docs/prove.md.`);
}

function fewOrTwice(lists: Readonly<Record<string, readonly number[]>>): string | undefined {
  for (const [name, values] of Object.entries(lists)) {
    if (values.length === 0) return `${name} is empty`;
    if (new Set(values).size < values.length) return `${name} lists a value twice`;
  }
  return undefined;
}
