/** The environment packages of generated tasks: one per family, under the key `sim.<family>@1`. The digest covers every
 *  task, every oracle and the limits of grading. In: tasks. Out: sealed records. Two sets of tasks with any difference
 *  have different packages under the same key, distinguished by their digests. */
import { digestJson, parseId } from "../../../base/index.ts";
import { type EnvironmentKey, EnvironmentPackage, type Sealed, seal } from "../../../contract/index.ts";
import type { SimTask } from "../tasks/index.ts";
import { SIM_LIMITS } from "./grade.ts";

/** Increment it when an environment treats the same tasks differently. */
const FAMILY_VERSION = "1";
/** Limits of an agent for one task. */
export const TASK_LIMITS = { maxTurns: 12, timeBudgetMs: 120_000 } as const;

export function familyPackages(tasks: readonly SimTask[]): Sealed<EnvironmentPackage>[] {
  const families = [...new Set(tasks.map((task) => task.oracle.family))].sort();
  return families.map((family) =>
    packageOf(
      family,
      tasks.filter((task) => task.oracle.family === family),
    ),
  );
}

function packageOf(family: string, tasks: readonly SimTask[]): Sealed<EnvironmentPackage> {
  const difficulties = [...new Set(tasks.map((task) => task.oracle.difficulty))].sort((a, b) => a - b);
  return seal(EnvironmentPackage, {
    key: `sim.${family}@${FAMILY_VERSION}` as EnvironmentKey,
    execution: { entrypoint: "rollbook sim", args: [], ...TASK_LIMITS },
    files: tasks.map((task) => ({ path: `${task.id}.json`, digest: task.digest })),
    tools: [],
    datasets: [
      {
        name: parseId("tasks"),
        digest: digestJson(
          "rollbook.sim-tasks.v1",
          tasks.map((task) => task.digest),
        ),
      },
    ],
    rubrics: [
      {
        name: parseId("oracles"),
        digest: digestJson("rollbook.sim-oracles.v1", {
          limits: SIM_LIMITS,
          oracles: tasks.map((task) => task.oracle),
        }),
      },
    ],
    difficulty: difficulties.join(","),
    benchmarkProfiles: [],
  });
}
