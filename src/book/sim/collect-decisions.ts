/** Logs routing decisions with their probabilities in a world whose optimum is known: simulated tasks, or recorded
 *  answers of real models.
 *  In: tasks or recorded answers, a behaviour policy, a book. Out: results, and the exact values beside them. */
import { given } from "../../base/index.ts";
import {
  type Behaviour,
  behaviourRouter,
  type FamilyValues,
  type KnownValues,
  type KnownWorld,
  knownValues,
  type ModelRoute,
  openRecordedRun,
  openSimRun,
  policyOfRouter,
  policyValue,
  recordedWorld,
  valuesByFamily,
} from "../../collect/sim/index.ts";
import type { Router } from "../../policy/index.ts";
import { readTable, readWorld } from "./read-files.ts";
import { readRecorded } from "./read-recorded.ts";
import { type GraderChoice, runOnBook, type SimPlace, type SimRan, withGrader } from "./run-on-book.ts";

interface CollectRequest extends SimPlace, GraderChoice {
  readonly from:
    | { readonly tasks: string; readonly models?: string | undefined }
    /** Path of the YAML description of a file of recorded answers. */
    | { readonly recorded: string };
  readonly policy: Behaviour;
  /** Static table for the policies epsilon-greedy and table (default: the first model). */
  readonly table?: string | undefined;
  readonly epsilon?: number | undefined;
  readonly temperature?: number | undefined;
}

interface CollectedDecisions extends SimRan {
  readonly values: KnownValues & { readonly behaviour: number };
  /** Exact values by family of the simulated tasks. */
  readonly families: readonly FamilyValues[];
}

export async function collectDecisions(request: CollectRequest): Promise<CollectedDecisions> {
  const { known, families, run } = await sourceOf(request);
  const router = routerFrom(request, known);
  const values = { behaviour: policyValue(known, policyOfRouter(router)), ...knownValues(known) };
  return { ...(await run({ kind: "router", router })), values, families };
}

interface DecisionWorld {
  readonly known: KnownWorld;
  readonly families: readonly FamilyValues[];
  run(route: ModelRoute): Promise<SimRan>;
}

async function sourceOf(request: CollectRequest): Promise<DecisionWorld> {
  const { from } = request;
  if ("recorded" in from) {
    const set = await readRecorded(from.recorded);
    return {
      known: recordedWorld(set),
      families: [],
      run: (route) => runOnBook(request, { route, open: (place) => openRecordedRun({ ...place, set }) }),
    };
  }
  const world = readWorld(from);
  return {
    known: world,
    families: valuesByFamily(world),
    run: (route) =>
      withGrader(world, request, (grader) =>
        runOnBook(request, {
          route,
          open: (place) => openSimRun({ ...place, world, grader, agent: "chat" }),
        }),
      ),
  };
}

function routerFrom({ policy, table, epsilon, temperature }: CollectRequest, world: KnownWorld): Router {
  return behaviourRouter(policy, {
    models: world.candidates.map(({ id }) => id),
    ...(table === undefined ? {} : { table: readTable(table, world) }),
    ...given({ epsilon, temperature }),
  });
}
