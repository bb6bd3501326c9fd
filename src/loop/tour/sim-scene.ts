/** Shows acting agents: a dozen tasks are generated and proved, and models of known skill try them in a sandbox. A
 *  uniform choice routes. The scene prints the observed values beside the exact ones. Runs anywhere: JavaScript in
 *  QuickJS. The scene has its own book in the scratch folder. */
import { join } from "node:path";
import { parseId, rngFrom } from "../../base/index.ts";
import { meanReward, sayObserved } from "../../book/sim/index.ts";
import { openSqliteQueue } from "../../collect/queue/index.ts";
import type { RolloutResult } from "../../collect/rollout/index.ts";
import { openSandbox, type Sandbox } from "../../collect/sandbox/index.ts";
import {
  behaviourRouter,
  DEFAULT_MODELS,
  FAMILIES,
  generateTasks,
  knownValues,
  makeWorld,
  openSimRun,
  type ProvedTask,
  policyOfRouter,
  policyValue,
  proveTask,
  requestSeed,
  type SimWorld,
  sandboxGrader,
} from "../../collect/sim/index.ts";
import { RolloutContent } from "../../contract/index.ts";
import { type Book, openBook, readRecord } from "../../store/index.ts";
import { plural } from "../../view/format.ts";
import type { Stage, TourScene } from "./stage.ts";

const TASKS = 12;
const SAMPLES = 1;
const WORKERS = 2;

export const simScene: TourScene = {
  title: "agents act in the sandbox",
  async play(stage) {
    const sandbox = await openSandbox({ engine: "quickjs", workers: WORKERS });
    try {
      const world = makeWorld({ tasks: await makeTasks(stage, sandbox), models: DEFAULT_MODELS });
      const router = behaviourRouter("uniform", { models: DEFAULT_MODELS.map(({ name }) => name) });
      const { results, foretold } = await collect(stage, { world, sandbox, router });
      const { best, bestSingle } = knownValues(world);
      const behaviour = policyValue(world, policyOfRouter(router));
      const observed = meanReward(results);
      const { count, mean } = observed;
      const holds = count === TASKS * SAMPLES && foretold === count;
      return {
        lines: [
          `${plural(TASKS, "task")} generated, each checked twice with its right and its wrong solutions; ${plural(count, "rollout")}, each routed evenly over ${DEFAULT_MODELS.length} models`,
          `observed ${sayObserved(observed)}, exactly ${behaviour.toFixed(4)}; best single model ${bestSingle.value.toFixed(3)} (${bestSingle.model}), best policy ${best.toFixed(3)}`,
        ],
        proved: holds
          ? "every rollout, graded by hidden tests, earned what was foretold; so the best policy's value is known exactly"
          : `NOTHING: of ${count} rollouts ${foretold} earned what was foretold`,
        data: { rollouts: count, foretold, observed: mean, behaviour, best, bestSingle },
      };
    } finally {
      await sandbox.close();
    }
  },
};

async function makeTasks({ seed }: Stage, sandbox: Sandbox): Promise<ProvedTask[]> {
  const tasks: ProvedTask[] = [];
  const families = FAMILIES.filter(({ language }) => language === "javascript");
  const prove = (task: ProvedTask["task"]) => proveTask(task, sandbox);
  for await (const { task, proof } of generateTasks({
    ...{ count: TASKS, seed, families, difficulties: [1, 3, 5], prove, parallel: WORKERS },
  }))
    if (proof !== undefined) tasks.push({ task, proof });
  return tasks;
}

async function collect(
  { clock, signer, scratch, seed }: Stage,
  {
    world,
    sandbox,
    router,
  }: { world: SimWorld; sandbox: Sandbox; router: ReturnType<typeof behaviourRouter> },
): Promise<{ results: RolloutResult[]; foretold: number }> {
  const book = await openBook(join(scratch, "simulated"), { clock });
  const queue = openSqliteQueue(":memory:", { clock });
  try {
    const run = await openSimRun({
      ...{ world, book, queue, clock, signer, seed, samples: SAMPLES, workers: WORKERS * 2 },
      ...{ agent: "chat", grader: sandboxGrader(sandbox), route: { kind: "router", router } },
      ...{ exp: "demo", worker: parseId("demo"), rng: rngFrom(seed), newId: () => "r-unnamed" },
    });
    try {
      const results: RolloutResult[] = [];
      let foretold = 0;
      for await (const result of run.launched) {
        results.push(result);
        if (await isForetold(book, world, result)) foretold++;
      }
      // Sorted, so that sums do not depend on the order of completion.
      return { results: results.sort((a, b) => a.row - b.row || a.sample - b.sample), foretold };
    } finally {
      await run.close();
    }
  } finally {
    await queue.close();
    await book.close();
  }
}

/** True if the rollout earned the reward computed from task, chosen model and seed, without running a program. */
async function isForetold(book: Book, world: SimWorld, result: RolloutResult): Promise<boolean> {
  if (result.state !== "sealed") return false;
  const { streams, seed } = await readRecord(book, RolloutContent, result.content);
  const [choice] = streams[0]?.level === "step" ? streams[0].steps : [];
  if (choice === undefined) return false;
  return world.outcomes(result.row, choice.chosen).outcome(requestSeed(seed)).reward === result.reward;
}
