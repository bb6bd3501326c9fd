/** An agent of the user's as the world of a loop: its tasks, and a gateway that asks the policy for a model.
 *  The gateway is opened for a window and closed after it. What models answer is not a function of seeds: two such runs differ. */
import { digestJson, type Json, parseJson, RollbookError } from "../../base/index.ts";
import { followLaunch, launch, openGateway } from "../../book/collect/index.ts";
import { loadAgent, type RolloutResult } from "../../collect/rollout/index.ts";
import { ROUTER_FAMILY } from "../../collect/sim/index.ts";
import { serveRouter } from "../../serve/index.ts";
import type { LoopConfig } from "../config.ts";
import { readText } from "../read-text.ts";
import { FailingStart } from "./failing-start.ts";
import { assignedOf, type LoopWorld } from "./world.ts";

type AgentConfig = Extract<LoopConfig["world"], { kind: "agent" }>;

/** `hidden`: what the agent must not see beside its tasks. */
export async function agentWorld(config: AgentConfig, hidden: readonly string[]): Promise<LoopWorld> {
  const { route, environment } = config;
  const agent = await loadAgent(config.agent, { hidden: [config.tasks, ...hidden] });
  const rows = readRows(config.tasks);
  const digests = rows.map((row) => digestJson("rollbook.loop-row.v1", row));
  const models = await routedModels(config);
  return {
    digest: digestJson("rollbook.loop-agent-world.v1", {
      ...{ agent: agent.digest, rows: digests, models, route, environment },
    }),
    ...{ models, family: ROUTER_FAMILY, rows: rows.length },
    assign: (chosen, samples) => assignedOf(chosen, samples, digests),
    async collect({ router, model, assigned, experiment, identity, book, seed, workers, ...place }) {
      const served = serveRouter(router, {
        ...{ family: ROUTER_FAMILY, seed: Number(seed), model, why: `the router of ${experiment}` },
        ...{ clock: book.clock, log: place.log },
      });
      const gateway = await openGateway({
        // A name of its own: a gateway with the same file may serve the same book. Not the name whose journal a restart
        // forgets: what real models answered is kept.
        ...{ book, config: config.gateway, port: 0, worker: `${place.gateway}.agent`, log: place.log },
        identity: () => identity,
        choose: served.choose,
      });
      try {
        const results: RolloutResult[] = [];
        const start = new FailingStart();
        const launched = launch(
          assigned.rows.map((row) => rows[row]! as object),
          {
            ...{ book, agent, environment, seed, exp: experiment, samples: assigned.samples },
            ...{ concurrency: workers, queue: place.queue, log: place.log },
            drain: AbortSignal.any([place.drain, start.signal]),
            ...{
              gateway: { url: gateway.url, desk: gateway.desk },
              modelId: route,
              identity: () => identity,
            },
          },
        );
        const progress = await followLaunch(launched, {
          onProgress: place.onProgress,
          onResult(result) {
            results.push(result);
            start.add(result);
          },
        });
        start.check(experiment);
        return { results, progress };
      } finally {
        await gateway.close();
      }
    },
    exact: undefined,
  };
}

export function readRows(path: string): readonly Json[] {
  const lines = readText(path, "tasks").split("\n");
  return lines.flatMap((line, i) => (line.trim() === "" ? [] : [parseJson(line, `${path}:${i + 1}`)]));
}

/** The models of the route, as the gateway's own configuration lists them. */
async function routedModels({ gateway, route }: AgentConfig): Promise<readonly string[]> {
  const { parseGatewayConfig } = await import("../../collect/gateway/index.ts");
  const { routes } = parseGatewayConfig(readText(gateway, "the configuration of a gateway"), gateway);
  const models = routes[route];
  if (models !== undefined) return models;
  const known = Object.keys(routes);
  throw new RollbookError(
    "bad-config",
    { gateway, route, known },
    `${gateway} has no route ${route}. ${known.length === 0 ? "Add one under routes" : `It has ${known.join(", ")}`}.`,
  );
}
