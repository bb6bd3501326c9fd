/** Makes an agent of the user the world of a loop: its tasks, and a gateway that asks the policy for a model. The
 *  rollouts name the router of the window, so any gateway on the book can serve it. The gateways are those of the
 *  configuration, or one that is opened for the window and closed after it. Answers of models are not a function of
 *  seeds, so two such runs differ. */
import { type Digest, digestJson, type Json, RollbookError } from "../../base/index.ts";
import {
  followLaunch,
  type GatewayRequest,
  launch,
  openGateway,
  parseTask,
} from "../../book/collect/index.ts";
import type { BookOnDisk } from "../../book/open/index.ts";
import { openNamedRouter, sealNamedRouter } from "../../book/serve/index.ts";
import { type GatewayPlace, loadAgent, type RolloutResult } from "../../collect/rollout/index.ts";
import { readText } from "../../store/index.ts";
import type { LoopConfig } from "../config.ts";
import { FailingWindow } from "./failing-window.ts";
import { choiceFamily } from "./families.ts";
import { assignedOf, type LoopWorld } from "./world.ts";

type AgentConfig = Extract<LoopConfig["world"], { kind: "agent" }>;

interface AgentWorld extends LoopWorld {
  /** Variables of this environment that the agent does not get. A server has its own environment. */
  readonly hiddenVariables: readonly string[];
}

/** `hidden`: paths, beside its tasks, that the agent must not see. */
export async function agentWorld(
  loop: Pick<LoopConfig, "options" | "gateways" | "gatewayTokenEnv">,
  config: AgentConfig,
  hidden: readonly string[],
): Promise<AgentWorld> {
  const { route, environment } = config;
  // Gateway and agent are started by one process, so its environment holds the keys of the model servers.
  const { models, secrets } = await gatewayFacts(config);
  const { gatewayTokenEnv: token } = loop;
  const isServer = /^https?:/.test(config.agent);
  const hiddenEnv = [...new Set(token === undefined ? secrets : [...secrets, token])];
  const agent = await loadAgent(config.agent, { hidden: [config.tasks, ...hidden], hiddenEnv });
  const rows = readRows(config.tasks);
  const digests = rows.map((row) => digestJson("rollbook.loop-row.v1", row));
  const cluster = clusterOf(loop);
  const family = choiceFamily(config);
  return {
    digest: digestJson("rollbook.loop-agent-world.v1", {
      ...{ agent: agent.digest, rows: digests, models, route, environment },
    }),
    ...{ models, family, rows: rows.length },
    hiddenVariables: isServer ? [] : hiddenEnv.filter((variable) => process.env[variable] !== undefined),
    assign: (chosen, samples) => assignedOf(chosen, samples, digests),
    async collect({ assigned, experiment, identity, book, seed, workers, ...place }) {
      const { signer } = identity;
      const named = await sealNamedRouter(book, place.router, { family, seed, signer });
      const gateway = await placeOf(cluster, {
        // The worker has its own name: a gateway with the same file may serve the same book. A restart discards the
        // journal of `place.gateway`, but answers of real models must be kept.
        ...{ book, config: config.gateway, port: 0, worker: `${place.gateway}.agent`, log: place.log },
        ...{ identity: () => identity, router: named.digest, keptThread: place.keptThread },
      });
      try {
        const results: RolloutResult[] = [];
        const failing = new FailingWindow(assigned.rows.length * assigned.samples);
        const launched = launch(
          assigned.rows.map((row) => rows[row]! as object),
          {
            ...{ book, agent, environment, seed, exp: experiment, samples: assigned.samples },
            ...{ concurrency: workers, queue: place.queue, log: place.log, modelId: route },
            ...{ gateway: gateway.place, router: named.digest, identity: () => identity },
            drain: AbortSignal.any([place.drain, failing.signal]),
            onAttempt: (item, ending) => failing.tried(item, ending),
          },
        );
        const progress = await followLaunch(launched, {
          onProgress: place.onProgress,
          onResult(result) {
            results.push(result);
            failing.ended(result);
          },
        });
        failing.check(experiment, loop.options);
        return { results, progress };
      } finally {
        await gateway.close();
      }
    },
    exact: undefined,
  };
}

/** Gateways of the configuration; undefined if it names none. */
function clusterOf({
  gateways,
  gatewayTokenEnv,
}: Pick<LoopConfig, "gateways" | "gatewayTokenEnv">): GatewayPlace | undefined {
  return gateways === undefined ? undefined : { url: gateways.join(), ...tokenIn(gatewayTokenEnv) };
}

/** Gateways of the configuration, or one that is opened for the window. */
async function placeOf(
  cluster: GatewayPlace | undefined,
  { router, ...request }: GatewayRequest & { book: BookOnDisk; router: Digest },
): Promise<{ place: GatewayPlace; close(): Promise<void> }> {
  if (cluster !== undefined) return { place: cluster, close: async () => {} };
  // Replaces the router of the file, if it has one.
  const choose = await openNamedRouter(request.book, router);
  const { url, desk, close } = await openGateway({ ...request, choose });
  return { place: { url, desk }, close: () => close() };
}

function tokenIn(variable: string | undefined): { token?: string } {
  if (variable === undefined) return {};
  const token = process.env[variable];
  if (token) return { token };
  throw new RollbookError(
    "no-key",
    { variable },
    `the environment variable ${variable} is not set. Set it to the token of the gateways.`,
  );
}

/** `key`: the setting that names the file. */
export function readRows(path: string, key = "world.tasks"): readonly Json[] {
  const lines = readText(path, "tasks").split("\n");
  return lines.flatMap((line, i) =>
    line.trim() === "" ? [] : [parseTask(line, `${key}: ${path}:${i + 1}`)],
  );
}

/** Models of the route, as listed in the gateway's own configuration, and the variables that hold its secrets. */
async function gatewayFacts({
  gateway,
  route,
}: AgentConfig): Promise<{ models: readonly string[]; secrets: readonly string[] }> {
  const { parseGatewayConfig, secretVariables } = await import("../../collect/gateway/index.ts");
  const config = parseGatewayConfig(readText(gateway, "the configuration of a gateway"), gateway);
  const models = config.routes[route];
  if (models !== undefined) return { models, secrets: secretVariables(config) };
  const known = Object.keys(config.routes);
  throw new RollbookError(
    "bad-config",
    { gateway, route, known },
    `${gateway} has no route ${route}. ${known.length === 0 ? "Add one under routes" : `It has ${known.join(", ")}`}.`,
  );
}
