/** Behaviour policies for collection. Each is a router for `decide()`, so the log holds the distribution of the draw.
 *  In: a name, a table, a share. Out: a Router. It sees the input of every router: prompt, request fields and
 *  prices. */
import { digestJson, log1p, parseId, RollbookError, rngFrom, softmax } from "../../../base/index.ts";
import {
  type DecisionCandidate,
  type DecisionPolicy,
  decide,
  digestRouter,
  distribution,
  parseStaticTable,
  type Router,
  type StaticTable,
} from "../../../policy/index.ts";
import type { Choose } from "../../gateway/index.ts";
import type { PolicyOf } from "../world/index.ts";

export const BEHAVIOURS = ["uniform", "epsilon-greedy", "table", "softmax"] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

/** The family under which routing decisions of the simulator are logged. */
export const ROUTER_FAMILY = "sim.router";

interface BehaviourOptions {
  /** Fallback models of a table, in order. */
  readonly models: readonly string[];
  readonly table?: StaticTable;
  /** Share of uniform choices, for epsilon-greedy and softmax. */
  readonly epsilon?: number;
  readonly temperature?: number;
}

export function behaviourRouter(behaviour: Behaviour, options: BehaviourOptions): Router {
  const { models, table = firstOf(models), epsilon = 0.1, temperature = 0.5 } = options;
  switch (behaviour) {
    case "uniform":
      return { table, floor: 0, exploration: 1 };
    case "epsilon-greedy":
      return { table, floor: 0, exploration: epsilon };
    case "table":
      return { table, floor: 0, exploration: 0 };
    case "softmax":
      return { table, floor: 0, exploration: epsilon, policy: priceByLength(temperature) };
    default:
      return behaviour satisfies never;
  }
}

/** The gateway's `choose`. A draw follows from the seeds of the run and of the request, and from the length of the
 *  conversation. The order of requests therefore does not matter. The calls of one rollout are drawn independently of
 *  each other, as their logged probabilities require. The key of a request without a seed is its prompt. */
export function chooseWith(router: Router, seed: bigint): Choose {
  const rng = rngFrom(seed).split("routes");
  const digest = digestRouter(router);
  const revision = { id: parseId(`router-${digest.slice(7, 19)}`), digest };
  return ({ alias, context, candidates, seed: asked }) => {
    const left = candidates.filter((one) => one.selectable).length;
    const key = asked === undefined ? `prompt ${context.prompt}` : `seed ${asked}`;
    return {
      decision: decide(
        context,
        candidates,
        router,
        rng.split(`${alias}\n${left}\n${context.fields.messages ?? 0}\n${key}`),
      ),
      family: ROUTER_FAMILY,
      revision,
    };
  };
}

/** The router's final distribution, for the computation of exact values. */
export function policyOfRouter(router: Router): PolicyOf {
  return (context, candidates) => distribution(context, candidates, router).probabilities;
}

/** A table that takes the first available model, in the order of the list. */
function firstOf(models: readonly string[]): StaticTable {
  return parseStaticTable(
    `schema: rollbook.static-table.v1\ndefault: ${JSON.stringify(models)}\n`,
    "the list of models",
  );
}

/** A policy without weights. Its temperature is its only parameter. */
interface PriceByLength extends DecisionPolicy {
  readonly temperature: number;
}

/** P ∝ exp(4 · (ln(1 + n) / ln(1501) − 1) · ln(1 + price) / T) for a prompt of n characters. Longer prompts favour
 *  expensive models, and short prompts favour cheap ones. */
export function priceByLength(temperature: number): PriceByLength {
  if (!(temperature > 0))
    throw new RollbookError("bad-temperature", { temperature }, `temperature ${temperature} is not above 0.`);
  const digest = digestJson("rollbook.sim-softmax.v1", { temperature });
  return {
    family: ROUTER_FAMILY,
    revision: { id: parseId("price-by-length"), digest },
    temperature,
    answer({ prompt }, candidates) {
      const length = log1p(prompt.length) / log1p(1500) - 1;
      const scores = Float64Array.from(candidates, (one) =>
        one.selectable ? (4 * length * log1p(priceOf(one))) / temperature : Number.NEGATIVE_INFINITY,
      );
      softmax(scores);
      return { probabilities: Array.from(scores), confidence: 1 };
    },
  };
}

function priceOf({ features }: DecisionCandidate): number {
  return features.completionPrice ?? 0;
}
