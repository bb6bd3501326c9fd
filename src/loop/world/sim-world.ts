/** Makes the simulator the world of a loop: proved tasks, declared models, exact values. */
import { existsSync, renameSync, rmSync } from "node:fs";
import {
  generateTaskFolder,
  readModels,
  readWorld,
  requireProver,
  runOnBook,
  withGrader,
} from "../../book/sim/index.ts";
import { knownValues, makeWorld, openSimRun, policyOfRouter, policyValue } from "../../collect/sim/index.ts";
import type { LoopConfig } from "../config.ts";
import { choiceFamily } from "./families.ts";
import { assignedOf, type LoopWorld } from "./world.ts";

type SimConfig = Extract<LoopConfig["world"], { kind: "simulator" }>;

export function simWorld(config: SimConfig): LoopWorld {
  const { fast, engine } = config;
  const world = readWorld(config, "world.models");
  const { tasks, models, weights } = world;
  const digests = tasks.map(({ task }) => task.digest);
  return {
    digest: world.digest,
    models: models.map(({ name }) => name),
    family: choiceFamily(config),
    rows: tasks.length,
    assign: (rows, samples) => assignedOf(rows, samples, digests),
    collect({ router, assigned, experiment, identity, ...place }) {
      const own = makeWorld({ tasks: assigned.rows.map((row) => tasks[row]!), models, weights });
      return withGrader(own, { engine, fast, workers: place.workers }, (grader) =>
        runOnBook(
          { ...place, exp: experiment, samples: assigned.samples, identity: () => identity },
          {
            route: { kind: "router", router },
            open: (at) => openSimRun({ ...at, world: own, grader, agent: "chat" }),
          },
        ),
      );
    },
    exact: {
      value: (router) => policyValue(world, policyOfRouter(router)),
      best: knownValues(world).best,
    },
  };
}

/** Facts of the world that are known before its tasks are generated; undefined if there is nothing to generate. */
export function worldToCome({ tasks, generate, models }: SimConfig): WorldToCome | undefined {
  if (generate === undefined || existsSync(tasks)) return undefined;
  return { rows: generate.count, models: readModels(models).map(({ name }) => name) };
}

type WorldToCome = Pick<LoopWorld, "rows" | "models">;

/** Opens and closes the sandbox that a new run needs for its tasks or its rollouts. Throws if it cannot be opened here, or
 *  does not run their programs. */
export async function requireEngine(config: SimConfig): Promise<void> {
  const { tasks, generate, fast, engine } = config;
  if (generate !== undefined && !existsSync(tasks))
    return requireProver({ families: generate.families, engine });
  if (!fast) await withGrader(readWorld(config), { engine, workers: 1 }, async () => {});
}

/** Number of programs that run at the same time while tasks are proved. */
const PROVERS = 4;

/** Generates the tasks of the configuration if there are none. It writes to a temporary folder, so that the folder is
 *  complete or missing. A run that is killed meanwhile generates the same tasks again. */
export async function ensureTasks({ tasks, generate, engine }: SimConfig): Promise<void> {
  if (generate === undefined || existsSync(tasks)) return;
  const { count, seed, families, difficulties } = generate;
  const out = `${tasks}.part`;
  rmSync(out, { recursive: true, force: true });
  await generateTaskFolder({
    ...{ out, count, seed: BigInt(seed), families, difficulties, engine, workers: PROVERS, prove: true },
  });
  renameSync(out, tasks);
}
