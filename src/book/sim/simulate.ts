/** Runs an agent on simulated tasks and seals the rollouts.
 *  In: tasks, an agent, a model or a router, a book. Out: results, and the exact expected reward of the agent if it
 *  is known. */
import { existsSync } from "node:fs";
import { given, RollbookError } from "../../base/index.ts";
import { type Agent, type Confinement, findBubblewrap, loadAgent } from "../../collect/rollout/index.ts";
import {
  type KnownValues,
  knownValues,
  type ModelRoute,
  mostCalls,
  openSimRun,
  policyOfRouter,
  policyValue,
  type SimWorld,
} from "../../collect/sim/index.ts";
import { routerOf } from "../../judge/evaluate/index.ts";
import type { Router } from "../../policy/index.ts";
import { hiddenFrom } from "../collect/index.ts";
import { loadPolicy, setupOf } from "../judge/index.ts";
import { readTable, readWorld } from "./read-files.ts";
import { type GraderChoice, runOnBook, type SimPlace, type SimRan, withGrader } from "./run-on-book.ts";

interface SimulateRequest extends SimPlace, GraderChoice, Pick<Confinement, "isolation" | "shared"> {
  /** Folder of the tasks. */
  readonly tasks: string;
  /** YAML file of simulated models (default: the built-in models). */
  readonly models?: string | undefined;
  /** `chat`, `reference`, or the path of an agent file. */
  readonly agent: string;
  /** Model that answers if no router chooses (default: the first one). */
  readonly model?: string | undefined;
  /** Static table that chooses the model, or the fallback of `checkpoint`. */
  readonly router?: string | undefined;
  readonly checkpoint?: string | undefined;
  readonly floor?: number | undefined;
  /** Asks the router for every call instead of once per rollout. */
  readonly everyTurn?: boolean | undefined;
  readonly maxTurns?: number | undefined;
  readonly timeMs?: number | undefined;
}

interface Simulated extends SimRan {
  readonly world: SimWorld;
  /** Undefined if no closed form is known. */
  readonly values: ExactValues | undefined;
}

export interface ExactValues {
  readonly expected: number;
  readonly best: number;
  readonly bestSingle: KnownValues["bestSingle"];
}

export async function simulate(request: SimulateRequest): Promise<Simulated> {
  const { agent: name, maxTurns, timeMs } = request;
  const world = readWorld(request);
  const agent = name === "chat" || name === "reference" ? name : await examinee(name, request);
  const route = routeOf(request, world);
  const limits = given({ timeMs, maxTurns });
  const ran = await withGrader(world, request, (grader) =>
    runOnBook(request, {
      ...{ route, limits },
      open: (place) => openSimRun({ ...place, world, agent, grader }),
    }),
  );
  const { truncated } = ran.progress;
  const values = agent === "chat" ? exactValues(world, { route, maxTurns, truncated }) : undefined;
  return { ...ran, world, values };
}

/** Opens an agent of the user without access to the solutions, which lie beside the tasks. */
async function examinee(path: string, request: SimulateRequest): Promise<Agent> {
  const { isolation = "auto", shared, tasks } = request;
  if (!/^https?:/.test(path) && !existsSync(path))
    throw new RollbookError(
      "bad-agent",
      { path },
      `${path} is neither an agent of the simulator (chat, reference) nor a file. Correct --agent.`,
    );
  if (isolation === "auto" && findBubblewrap() === undefined)
    request.log?.(
      `bubblewrap does not work here: the agent runs as this user and can read ${tasks}, solutions included. Install it to keep agents from reading them.`,
    );
  return loadAgent(path, { isolation, shared, hidden: hiddenFrom(request, tasks), confinePrograms: true });
}

function routeOf(request: SimulateRequest, world: SimWorld): ModelRoute {
  const { model, router, checkpoint, everyTurn = false } = request;
  if (router === undefined && checkpoint === undefined)
    return { kind: "model", model: model ?? world.models[0]!.name };
  return { kind: "router", router: routerFrom(request, world), everyTurn };
}

function routerFrom({ router, checkpoint, floor }: SimulateRequest, world: SimWorld): Router {
  if (checkpoint === undefined) return { table: readTable(router!, world), floor: 0, exploration: 0 };
  const loaded = loadPolicy(checkpoint);
  requireKnownModel(loaded.checkpoint.model.arms, world, checkpoint);
  return routerOf(
    setupOf(loaded, { table: router, floor, exploration: 0, known: world.models.map(({ name }) => name) }),
  );
}

/** Refuses a policy that knows no model here: it would never decide, and the run would not tell. */
function requireKnownModel(arms: readonly string[], { models }: SimWorld, checkpoint: string): void {
  const names = models.map(({ name }) => name);
  if (names.some((name) => arms.includes(name))) return;
  throw new RollbookError(
    "unseen-candidate",
    { checkpoint, models: names, known: arms },
    `${checkpoint} was trained on decisions among ${arms.join(", ")}, and knows none of the simulated models (${names.join(", ")}). Train a policy on decisions of \`rollbook sim collect\`, or name its models with --models.`,
  );
}

/** Undefined if the router is asked for every turn, or if limits stop models early. */
function exactValues(
  world: SimWorld,
  { route, maxTurns, truncated }: { route: ModelRoute; maxTurns: number | undefined; truncated: number },
): ExactValues | undefined {
  if (route.kind === "router" && route.everyTurn === true) return undefined;
  if (truncated > 0 || (maxTurns !== undefined && maxTurns < Math.max(...world.models.map(mostCalls))))
    return undefined;
  const { single, best, bestSingle } = knownValues(world);
  const expected =
    route.kind === "model" ? single[route.model]! : policyValue(world, policyOfRouter(route.router));
  return { expected, best, bestSingle };
}
