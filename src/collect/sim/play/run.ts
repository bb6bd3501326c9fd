/** Runs agents in a simulated world. In: a world, a grader, an agent, a model or a router, a book. Out: a launch whose
 *  rollouts are graded by hidden tests. routed-run.ts does the running. */
import { digestJson } from "../../../base/index.ts";
import {
  type Agent,
  defineRollout,
  functionAgent,
  type RolloutFunction,
  type Scorer,
} from "../../rollout/index.ts";
import { environmentPackage, type Grader, ROLLOUT_LIMITS } from "../prove/index.ts";
import { simulatedModels } from "../serve/index.ts";
import { promptOf, type SimTask } from "../tasks/index.ts";
import { type SimWorld, simScorer } from "../world/index.ts";
import { chatAgent, readVisible } from "./chat-agent.ts";
import { openRoutedRun, type RoutedRun, type RunPlace } from "./routed-run.ts";

export interface SimRunOptions extends RunPlace {
  readonly world: SimWorld;
  readonly grader: Grader;
  readonly agent: "chat" | "reference" | Agent;
}

export function openSimRun(options: SimRunOptions): Promise<RoutedRun> {
  const { world, grader, limits } = options;
  const scorer = simScorer({ grade: grader.grade, models: world.models, weights: world.weights });
  const tasks = world.tasks.map(({ task }) => task);
  return openRoutedRun({
    ...options,
    rows: tasks.map(rowOf),
    agent: agentOf(options, scorer),
    models: world.models,
    answer: simulatedModels(tasks, world.models),
    environment: environmentPackage(world, { grader, scorer, ...(limits === undefined ? {} : { limits }) }),
    dataSource: "synthetic",
    limits: { ...ROLLOUT_LIMITS, ...limits },
  });
}

/** The payload is the visible part, for the agent. The label is the oracle, for the reward. Solutions are left out. */
function rowOf({ visible, oracle }: SimTask): object {
  return { prompt: promptOf(visible), label: oracle, metadata: visible };
}

/** Hands in the reference solution, to measure the reward of a perfect agent without a model. */
function referenceAgent(tasks: readonly SimTask[]): RolloutFunction {
  const solutions = new Map(tasks.map((task) => [promptOf(task.visible), task.solutions.reference]));
  return (payload) => {
    const files = solutions.get(promptOf(readVisible(payload))) ?? {};
    return { finalState: { files, calls: [] } };
  };
}

function agentOf({ agent, world, grader }: SimRunOptions, scorer: Scorer): Agent {
  // The tasks are proved, so an agent that blames the task or any other owner has failed itself.
  if (typeof agent !== "string") return { ...agent, scorer, blame: "refused" };
  const run =
    agent === "chat" ? chatAgent(grader.runTests) : referenceAgent(world.tasks.map(({ task }) => task));
  const digest = digestJson("rollbook.sim-agent.v1", { name: agent, version: 1 });
  return { ...functionAgent(defineRollout(run, { scorer }), { name: agent, digest }), blame: "trusted" };
}
