/** Derives the router candidates from a gateway's configuration: the models that a router alias stands for.
 *  In: a checked configuration, its router section. Out: the served routes, and the candidates as the gateway asks
 *  them. */
import { asSentence, isObject, isRollbookError, nearestName, RollbookError } from "../../base/index.ts";
import type { GatewayConfig } from "../../collect/gateway/index.ts";
import { type DecisionCandidate, readYaml } from "../../policy/index.ts";
import { checkRouterConfig, parseRouterConfig, type RouterConfig } from "../../serve/index.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** A router is enabled by the configuration, or by a checkpoint named in the environment. */
export function routerConfigOf({ router }: GatewayConfig, env: Variables): RouterConfig | undefined {
  if (router === undefined && (env.ROLLBOOK_CHECKPOINT ?? "") === "") return undefined;
  return checkRouterConfig(router ?? {}, { env });
}

/** An alias without a route of its own stands for the declared candidates, else for every model. */
export function withAliases(config: GatewayConfig, { aliases, candidates }: RouterConfig): GatewayConfig {
  const known = Object.keys(config.models);
  const unknown = Object.keys(candidates).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    const meant = nearestName(unknown, known);
    throw badRouter(
      `router.candidates names ${unknown}, which is not a model. ${meant === undefined ? `Known: ${known.join(", ")}` : `Did you mean ${meant}?`}`,
    );
  }
  const names = Object.keys(candidates).length > 0 ? Object.keys(candidates) : known;
  if (names.length === 0) throw badRouter("a router needs models to choose among. List them under models");
  const taken = aliases.find((alias) => known.includes(alias));
  if (taken !== undefined) throw badRouter(`${taken} is both a model and an alias of the router`);
  const missing = aliases.filter((alias) => !Object.hasOwn(config.routes, alias));
  const routes = { ...config.routes, ...Object.fromEntries(missing.map((alias) => [alias, names])) };
  return { ...config, router: config.router ?? {}, routes };
}

/** Candidates of all routes, as the gateway will ask them: one table serves every route. They reveal at start-up a
 *  table that names another model. */
export function routeCandidates(
  { routes, models }: GatewayConfig,
  { aliases }: RouterConfig,
): DecisionCandidate[] {
  const names = new Set([routes[aliases[0]!]!, ...Object.values(routes)].flat());
  return [...names].map((id) => {
    const { price } = models[id]!;
    const features =
      price === undefined ? {} : { promptPrice: price.prompt, completionPrice: price.completion };
    return { id, selectable: true, reasons: [], features };
  });
}

interface RouterFile {
  readonly config: RouterConfig;
  /** Of a gateway: the models of all routes. */
  readonly candidates?: readonly DecisionCandidate[];
  /** Of a gateway: the names of the models of each route. */
  readonly routes?: GatewayConfig["routes"];
}

/** Reads a file with a router section. The file of a gateway also lists the candidates. */
export async function readRouterFile(text: string, where: string, env: Variables): Promise<RouterFile> {
  const value = readYaml(
    text,
    (what) => new RollbookError("bad-config", { where }, `${where}: ${what}. Correct the file.`),
  );
  if (!isObject(value) || !("upstreams" in value))
    try {
      return { config: parseRouterConfig(text, where, env) };
    } catch (error) {
      if (!isObject(value) || "router" in value || !isRollbookError(error, "bad-config")) throw error;
      throw new RollbookError(
        "bad-config",
        { where },
        `${where} has no \`router:\` section. Without one, the whole file is read as the settings of a router: ${error.message}`,
        { cause: error },
      );
    }
  const { checkGatewayConfig } = await import("../../collect/gateway/index.ts");
  const gateway = checkGatewayConfig(value, where);
  const config = routerConfigOf(gateway, env);
  if (config === undefined)
    throw badRouter(
      `${where} has no router section, so the gateway asks the first model of a route. Add the section, or name a checkpoint`,
    );
  const routed = withAliases(gateway, config);
  return { config, candidates: routeCandidates(routed, config), routes: routed.routes };
}

function badRouter(fault: string): RollbookError {
  return new RollbookError("bad-config", {}, `the gateway's configuration: ${asSentence(fault)}`);
}
