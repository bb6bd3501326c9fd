/** Computes the result of a suite's run from its folder alone: tasks, logs and checkpoints in, figures out. Trains
 *  nothing, so a result can be checked by computing it again. */
import { join } from "node:path";
import { type Digest, type Rng, rngFrom } from "../../base/index.ts";
import { datasetOf } from "../../book/decisions/index.ts";
import { loadPolicy, setupOf } from "../../book/judge/index.ts";
import {
  behaviourRouter,
  knownValues,
  policyOfRouter,
  policyValue,
  type SimWorld,
} from "../../collect/sim/index.ts";
import { readDecisions } from "../../convert/index.ts";
import {
  type ArmMeans,
  type ArmResult,
  type BenchResult,
  differenceOverTasks,
  pairedDifference,
} from "../../judge/bench/index.ts";
import { routerOf } from "../../judge/evaluate/index.ts";
import { fitStaticTable, type LoggedRow } from "../../learn/index.ts";
import { draw, parseStaticTable, type Router } from "../../policy/index.ts";
import { type Suite, TABLE_ARM } from "./suite.ts";
import { checkpointFolder, logFile, type SuiteWorlds, worldsOf } from "./suite-folder.ts";

/** Measured arm: a trained policy with a confidence floor. Several arms may share one policy. */
export interface MeasuredArm extends Pick<ArmResult, "name" | "learner" | "floor"> {
  /** Name of the suite's arm whose checkpoint is used. */
  readonly trained: string;
}

/** Answers of the arms on the held-out tasks after one training log; the fitted table comes first. */
export interface AskedRepetition {
  readonly log: Digest;
  readonly arms: readonly AskedArm[];
}

interface AskedArm {
  readonly checkpoint: Digest;
  /** Probability of each candidate, for every held-out task. */
  readonly choices: readonly (readonly number[])[];
}

export async function measureSuite(suite: Suite, folder: string): Promise<BenchResult> {
  const worlds = worldsOf(suite, folder);
  const arms = suite.arms.map(({ name, learner, floor }) => ({
    ...{ name, learner: learner.kind, floor, trained: name },
  }));
  const asked: AskedRepetition[] = [];
  for (let index = 0; index < suite.repetitions; index++)
    asked.push(
      await askArms(arms, worlds.heldOut, {
        data: join(folder, logFile(index)),
        checkpointOf: (name) => join(folder, checkpointFolder(name, index)),
      }),
    );
  return resultOf(suite, { worlds, arms, asked });
}

/** Asks the table fitted to a log, and the policies that were trained on it. */
export async function askArms(
  arms: readonly MeasuredArm[],
  heldOut: SimWorld,
  { data, checkpointOf }: { data: string; checkpointOf: (trained: string) => string },
): Promise<AskedRepetition> {
  const rows: LoggedRow[] = [];
  for await (const row of readDecisions(data)) rows.push(row);
  const table = tableRouter(rows);
  const policies = new Map(
    [...new Set(arms.map(({ trained }) => trained))].map((name) => [name, loadPolicy(checkpointOf(name))]),
  );
  const learned = arms.map(({ trained, floor }) => {
    const policy = policies.get(trained)!;
    const router = routerOf(setupOf(policy, { floor, exploration: 0, known: policy.checkpoint.model.arms }));
    return { checkpoint: policy.checkpoint.revision.digest, choices: choicesOf(heldOut, router) };
  });
  return {
    log: (await datasetOf({ data }, {})).digest,
    arms: [{ checkpoint: table.table.digest, choices: choicesOf(heldOut, table) }, ...learned],
  };
}

function choicesOf(world: SimWorld, router: Router): number[][] {
  const policy = policyOfRouter(router);
  return world.contexts.map((context) => [...policy(context, world.candidates)]);
}

/** Router with the static table fitted to the same rows. */
function tableRouter(rows: readonly LoggedRow[]): Router {
  const { source } = fitStaticTable({ rows });
  return { table: parseStaticTable(JSON.stringify(source), "the fitted table"), floor: 0, exploration: 0 };
}

interface PlayedArm {
  readonly checkpoint: Digest;
  /** One entry per held-out task. */
  readonly played: readonly ArmMeans[];
  readonly exact: readonly ArmMeans[];
}

/** Every arm gets the same seed on a task: the same choice gives the same outcome. */
function play(world: SimWorld, { checkpoint, choices }: AskedArm, rng: Rng): PlayedArm {
  const played: ArmMeans[] = [];
  const exact: ArmMeans[] = [];
  world.tasks.forEach(({ task }, index) => {
    const own = rng.split(task.digest);
    const seed = own.u32();
    const probabilities = choices[index]!;
    played.push(add(NOTHING, world.outcomes(index, draw(probabilities, own)).outcome(seed), 1));
    exact.push(
      probabilities.reduce(
        (sum, p, candidate) => (p === 0 ? sum : add(sum, world.outcomes(index, candidate).expected, p)),
        NOTHING,
      ),
    );
  });
  return { checkpoint, played, exact };
}

const NOTHING: ArmMeans = { reward: 0, quality: 0, costUsd: 0, latencyMs: 0 };

function add(sum: ArmMeans, each: ArmMeans, weight: number): ArmMeans {
  return {
    reward: sum.reward + weight * each.reward,
    quality: sum.quality + weight * each.quality,
    costUsd: sum.costUsd + weight * each.costUsd,
    latencyMs: sum.latencyMs + weight * each.latencyMs,
  };
}

export function behaviourOf({ train }: Suite, { models }: SimWorld): Router {
  return behaviourRouter(train.behaviour, { models: models.map(({ name }) => name), epsilon: train.epsilon });
}

/** Computes the figures from the answers of the arms. */
export function resultOf(
  suite: Suite,
  {
    worlds,
    arms,
    asked,
  }: { worlds: SuiteWorlds; arms: readonly MeasuredArm[]; asked: readonly AskedRepetition[] },
): BenchResult {
  const { train, heldOut, all } = worlds;
  const { best, bestSingle, uniform } = knownValues(heldOut);
  const behaviour = policyValue(heldOut, policyOfRouter(behaviourOf(suite, heldOut)));
  const rng = (index: number) => rngFrom(BigInt(suite.seed)).split(`play ${index}`);
  const repetitions = asked.map((each, index) => each.arms.map((arm) => play(heldOut, arm, rng(index))));
  const named = [
    { name: TABLE_ARM, learner: "table", floor: 0 },
    ...arms.map(({ name, learner, floor }) => ({ name, learner, floor })),
  ];
  return {
    schema: "rollbook.bench-result.v1",
    suite: { name: suite.suite, digest: suite.digest },
    world: all.digest,
    tasks: { train: train.tasks.length, heldOut: heldOut.tasks.length },
    decisions: suite.train.decisions,
    repetitions: suite.repetitions,
    seed: suite.seed,
    logs: asked.map(({ log }) => log),
    known: { best, bestSingle: bestSingle.value, uniform, behaviour },
    arms: named.map((arm, a) => armResult(suite, repetitions, { arm, a, best, single: bestSingle.value })),
  };
}

function armResult(
  { level }: Suite,
  repetitions: readonly (readonly PlayedArm[])[],
  {
    arm,
    a,
    best,
    single,
  }: { arm: Pick<ArmResult, "name" | "learner" | "floor">; a: number; best: number; single: number },
): ArmResult {
  const own = repetitions.map((arms) => arms[a]!);
  const minusTable = (of: (arm: PlayedArm, task: number) => number) =>
    repetitions.map((arms) => arms[a]!.exact.map((_, task) => of(arms[a]!, task) - of(arms[0]!, task)));
  const exact = meanOf(own.flatMap((each) => each.exact));
  const rewards = minusTable((each, task) => each.exact[task]!.reward);
  return {
    ...arm,
    checkpoints: own.map(({ checkpoint }) => checkpoint),
    played: meanOf(own.flatMap((each) => each.played)),
    exact,
    cells: own.map((each) => each.exact.map(({ reward }) => reward)),
    gapClosed: best === single ? 1 : (exact.reward - single) / (best - single),
    versus: pairedDifference(rewards, level),
    byRepetition: rewards.map((row) => differenceOverTasks(row, level)),
    playedVersus: pairedDifference(
      minusTable((each, task) => each.played[task]!.reward),
      level,
    ),
    costVersus: pairedDifference(
      minusTable((each, task) => each.exact[task]!.costUsd),
      level,
    ),
  };
}

function meanOf(each: readonly ArmMeans[]): ArmMeans {
  return each.reduce((sum, one) => add(sum, one, 1 / each.length), NOTHING);
}
