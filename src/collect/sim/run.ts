/** Runs agents in a simulated world: gateway, simulated models, launcher and queue, on one code path with every launch.
 *  In: a world, who grades, an agent, a model or a router, a book. Out: a launch, to be iterated, then closed. The same
 *  options again run only what is missing. Decisions of the router are logged by the gateway with their probabilities. */
import { type Digest, digestJson } from "../../base/digest.ts";
import { RollbookError } from "../../base/errors.ts";
import type { Signer } from "../../contract/index.ts";
import { digestRouter, type Router } from "../../policy/index.ts";
import { makeSealer } from "../../store/sealer.ts";
import { checkGatewayConfig, openGateway } from "../gateway/index.ts";
import { type Agent, defineRollout, functionAgent, type RolloutFunction } from "../rollout/agent.ts";
import { gatewayRecorder } from "../rollout/gateway-recorder.ts";
import { type Launch, type LaunchOptions, launch } from "../rollout/launcher.ts";
import { bookRecorder } from "../rollout/recorder.ts";
import type { Scorer } from "../rollout/reward.ts";
import { chooseWith } from "./behaviour.ts";
import { chatAgent, readVisible } from "./chat-agent.ts";
import { environmentPackage, ROLLOUT_LIMITS } from "./environment-package.ts";
import type { Grader } from "./graders.ts";
import { simulatedModels } from "./model-server.ts";
import { promptOf } from "./prompt.ts";
import { simScorer } from "./reward.ts";
import type { SimTask } from "./sim-task.ts";
import type { SimWorld } from "./world.ts";

/** The name under which agents ask for whatever the router chooses. */
export const ROUTED = "auto";

export type SimRoute =
  | { readonly kind: "model"; readonly model: string }
  | { readonly kind: "router"; readonly router: Router; readonly everyTurn?: boolean };

export interface SimRunOptions
  extends Pick<
    LaunchOptions,
    "book" | "queue" | "clock" | "rng" | "worker" | "samples" | "seed" | "exp" | "limits" | "attempts"
  > {
  readonly world: SimWorld;
  readonly grader: Grader;
  readonly agent: "chat" | "reference" | Agent;
  readonly route: SimRoute;
  /** Rollouts at a time. */
  readonly workers: number;
  readonly newId: () => string;
  /** Signs registrations, uploads and receipts. */
  readonly signer: Signer;
  readonly signal?: AbortSignal;
  readonly retryBaseMs?: number;
  readonly heartbeatMs?: number;
  readonly log?: (line: string) => void;
}

export interface SimRun {
  readonly launched: Launch;
  close(): Promise<void>;
}

export async function openSimRun(options: SimRunOptions): Promise<SimRun> {
  const { world, grader, route, book, clock, signer } = options;
  const scorer = simScorer({ grade: grader.grade, models: world.models, weights: world.weights });
  const agent = agentOf(options, scorer);
  const environment = environmentPackage(world, { grader, scorer });
  const sealer = makeSealer(book, signer);
  if (!(await book.has(environment.digest)))
    await sealer.add({ envelope: environment, blobs: [environment] });
  const tasks = world.tasks.map(({ task }) => task);
  const gateway = await openGateway({
    config: gatewayConfig(world, environment.record.key),
    ...{ book, clock, signer, env: {}, rng: options.rng, newId: options.newId },
    local: { simulated: simulatedModels(tasks, world.models) },
    ...(route.kind === "router" ? { choose: chooseWith(route.router, options.seed) } : {}),
    ...(options.log === undefined ? {} : { log: options.log }),
  });
  const launched = launch(tasks.map(rowOf), {
    ...options,
    agent,
    form: "slime",
    recorder: gatewayRecorder({ url: gateway.url }, bookRecorder()),
    environment: environment.record.key,
    dataSource: "synthetic",
    modelId: route.kind === "model" ? checkModel(world, route.model) : ROUTED,
    extra: identityOf(options),
    limits: { ...ROLLOUT_LIMITS, ...options.limits },
    concurrency: options.workers,
  });
  return {
    launched,
    async close() {
      await launched.cancel();
      await gateway.close();
    },
  };
}

/** The agent gets the visible part as its payload, the reward the oracle as its label; solutions stay here. */
export function rowOf({ visible, oracle }: SimTask): object {
  return { prompt: promptOf(visible), label: oracle, metadata: visible };
}

/** Hands in the reference solution: what a perfect agent earns without a model. */
export function referenceAgent(tasks: readonly SimTask[]): RolloutFunction {
  const solutions = new Map(tasks.map((task) => [promptOf(task.visible), task.solutions.reference]));
  return (payload) => {
    const files = solutions.get(promptOf(readVisible(payload))) ?? {};
    return { finalState: { files, calls: [] } };
  };
}

function agentOf({ agent, world, grader }: SimRunOptions, scorer: Scorer): Agent {
  if (typeof agent !== "string") return { ...agent, scorer };
  const run =
    agent === "chat" ? chatAgent(grader.runTests) : referenceAgent(world.tasks.map(({ task }) => task));
  return functionAgent(defineRollout(run, { scorer }), {
    name: agent,
    digest: builtInDigest(agent),
  });
}

function builtInDigest(name: string): Digest {
  return digestJson("rollbook.sim-agent.v1", { name, version: 1 });
}

function gatewayConfig(world: SimWorld, environment: string) {
  const models = world.models.map(({ name, price }) => [
    name,
    { upstream: "simulated", price: { ...price } },
  ]);
  return checkGatewayConfig({
    listen: { port: 0 },
    worker: "sim",
    rollouts: { environment, dataSource: "synthetic" },
    upstreams: { simulated: { baseUrl: "local:simulated" } },
    models: Object.fromEntries(models),
    routes: { [ROUTED]: world.models.map(({ name }) => name) },
  });
}

/** What makes a run another run: it enters the ids of the rollouts. */
function identityOf({ world, route }: SimRunOptions): NonNullable<LaunchOptions["extra"]> {
  if (route.kind === "model") return { world: world.digest };
  return {
    world: world.digest,
    router: digestRouter(route.router),
    ...(route.everyTurn === true ? { route_every_turn: true } : {}),
  };
}

function checkModel({ models }: SimWorld, name: string): string {
  if (models.some((model) => model.name === name)) return name;
  throw new RollbookError(
    "unknown-model",
    { model: name },
    `no simulated model is called ${name}. There are ${models.map((model) => model.name).join(", ")}.`,
  );
}
