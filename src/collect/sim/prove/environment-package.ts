/** The package behind a simulated environment: tasks, models, reward, tools and limits, under one key `ref@version`.
 *  In: a world, a grader, the scorer, the limits of a run. Out: a sealed record. Its key is the environment of every
 *  rollout in that world. Two worlds with any relevant difference have different keys. */
import { digestJson, parseId } from "../../../base/index.ts";
import { type EnvironmentKey, EnvironmentPackage, type Sealed, seal } from "../../../contract/index.ts";
import type { RolloutLimits, Scorer } from "../../rollout/index.ts";
import { TOOLS } from "../tasks/index.ts";
import { digestModels, type SimWorld } from "../world/index.ts";
import { TASK_LIMITS } from "./family-packages.ts";
import type { Grader } from "./graders.ts";

/** Limits of an agent for one task, unless a run sets others. */
export const ROLLOUT_LIMITS = {
  timeMs: TASK_LIMITS.timeBudgetMs,
  maxTurns: TASK_LIMITS.maxTurns,
} as const;

export function environmentPackage(
  world: SimWorld,
  {
    grader,
    scorer,
    limits = {},
  }: { readonly grader: Grader; readonly scorer: Scorer; readonly limits?: RolloutLimits },
): Sealed<EnvironmentPackage> {
  const tasks = digestJson(
    "rollbook.sim-tasks.v1",
    world.tasks.map(({ task }) => task.digest),
  );
  const allowed = { ...ROLLOUT_LIMITS, ...limits };
  const version = digestJson("rollbook.sim-environment.v1", { world: world.digest, limits: allowed });
  return seal(EnvironmentPackage, {
    key: `${grader.ref}@${version.slice(7, 19)}` as EnvironmentKey,
    execution: {
      ...{ entrypoint: "rollbook sim", args: [] },
      ...{ maxTurns: allowed.maxTurns, timeBudgetMs: allowed.timeMs },
    },
    files: [],
    tools: TOOLS.map((tool) => structuredClone(tool) as never),
    datasets: [
      { name: parseId("tasks"), digest: tasks },
      { name: parseId("models"), digest: digestModels(world.models) },
    ],
    rubrics: [{ name: parseId(scorer.name), digest: scorer.digest }],
    benchmarkProfiles: [],
  });
}
