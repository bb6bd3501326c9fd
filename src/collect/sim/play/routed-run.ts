/** One launch with a separate gateway: rows, an agent, models that answer in this process, a router or a fixed model.
 *  In: these parts, a book, a queue. Out: a launch, to be iterated, then closed. The same options again run only the
 *  missing rollouts. The gateway logs the router's decisions with their probabilities. Knows no task and no reward. */
import { type Json, RollbookError } from "../../../base/index.ts";
import type { EnvironmentPackage, Sealed, Signer } from "../../../contract/index.ts";
import { digestRouter, type Router } from "../../../policy/index.ts";
import { makeSealer } from "../../../store/index.ts";
import { checkGatewayConfig, openGateway } from "../../gateway/index.ts";
import type { KeptThread } from "../../kept-thread.ts";
import {
  type Agent,
  bookRecorder,
  gatewayRecorder,
  type Launch,
  type LaunchOptions,
  launch,
} from "../../rollout/index.ts";
import type { ModelHandler } from "../serve/index.ts";
import { chooseWith } from "./behaviour.ts";

/** The model name with which agents request the router's choice. */
const ROUTED = "auto";

export type ModelRoute =
  | { readonly kind: "model"; readonly model: string }
  | { readonly kind: "router"; readonly router: Router; readonly everyTurn?: boolean };

/** Settings of a run that do not depend on its tasks and agent. */
export interface RunPlace
  extends Pick<
    LaunchOptions,
    "book" | "queue" | "clock" | "rng" | "worker" | "samples" | "seed" | "exp" | "limits" | "attempts"
  > {
  readonly route: ModelRoute;
  /** Number of concurrent rollouts. */
  readonly workers: number;
  readonly newId: () => string;
  /** Signs registrations, uploads and receipts. */
  readonly signer: Signer;
  readonly trusts?: NonNullable<LaunchOptions["trusts"]>;
  readonly signal?: AbortSignal;
  readonly drain?: AbortSignal | undefined;
  /** The name of the gateway's journal in the book (default: sim). Gateways with the same name exclude each other. */
  readonly gateway?: string | undefined;
  /** Keeps the sealing thread between runs on one book. */
  readonly keptThread?: KeptThread | undefined;
  readonly retryBaseMs?: number;
  readonly heartbeatMs?: number;
  readonly log?: (line: string) => void;
}

interface RoutedRunOptions extends RunPlace {
  readonly rows: readonly object[];
  readonly agent: Agent;
  readonly models: readonly RoutedModel[];
  readonly answer: ModelHandler;
  readonly environment: Sealed<EnvironmentPackage>;
  readonly dataSource: "real" | "synthetic";
}

export interface RoutedModel {
  readonly name: string;
  readonly price: { readonly prompt: number; readonly completion: number };
}

export interface RoutedRun {
  readonly launched: Launch;
  close(): Promise<void>;
}

export async function openRoutedRun(options: RoutedRunOptions): Promise<RoutedRun> {
  const { route, book, clock, signer, environment, models } = options;
  const modelId = route.kind === "model" ? checkModel(models, route.model) : ROUTED;
  if (!(await book.has(environment.digest)))
    await makeSealer(book, signer).add({ envelope: environment, blobs: [environment] });
  const gateway = await openGateway({
    config: gatewayConfig(options),
    ...{ book, clock, signer, env: {}, rng: options.rng, newId: options.newId },
    ...{ local: { models: options.answer }, keptThread: options.keptThread },
    ...(route.kind === "router" ? { choose: chooseWith(route.router, options.seed) } : {}),
    ...(options.log === undefined ? {} : { log: options.log }),
  });
  let launched: Launch;
  try {
    launched = launch(options.rows, {
      ...options,
      form: "slime",
      recorder: gatewayRecorder({ url: gateway.url, desk: gateway.desk }, bookRecorder()),
      environment: environment.record.key,
      modelId,
      extra: identityOf(options),
      concurrency: options.workers,
    });
  } catch (error) {
    await gateway.close();
    throw error;
  }
  return {
    launched,
    async close() {
      try {
        await launched.cancel();
      } finally {
        await gateway.close();
      }
    },
  };
}

function gatewayConfig({ models, environment, dataSource, gateway = "sim" }: RoutedRunOptions) {
  return checkGatewayConfig({
    listen: { port: 0 },
    worker: gateway,
    rollouts: { environment: environment.record.key, dataSource },
    upstreams: { models: { baseUrl: "local:models" } },
    models: Object.fromEntries(
      models.map(({ name, price }) => [name, { upstream: "models", price: { ...price } }]),
    ),
    routes: { [ROUTED]: models.map(({ name }) => name) },
  });
}

/** Fields that identify a run besides the launch settings. They enter the ids of the rollouts. */
function identityOf({ environment, route }: RoutedRunOptions): Record<string, Json> {
  if (route.kind === "model") return { environment: environment.digest };
  return {
    environment: environment.digest,
    router: digestRouter(route.router),
    ...(route.everyTurn === true ? { route_every_turn: true } : {}),
  };
}

function checkModel(models: readonly RoutedModel[], name: string): string {
  if (models.some((model) => model.name === name)) return name;
  throw new RollbookError(
    "unknown-model",
    { model: name },
    `no model is called ${name} here. There are ${models.map((model) => model.name).join(", ")}.`,
  );
}
