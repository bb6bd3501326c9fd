/** Behaviour policies to collect with, each of them a router for `decide()`, so that what is logged is what was drawn.
 *  In: a name, a table, a share. Out: a Router. They see what every router sees: prompt, request fields and prices. */
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
  /** What a table falls back on, in order. */
  readonly models: readonly string[];
  readonly table?: StaticTable;
  /** Share of even choices; of epsilon-greedy and softmax. */
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

/** The gateway's `choose`. A draw follows from the seed of the run, of the request, and how far its conversation is: the
 *  order in which requests come does not matter, and the calls of one rollout are drawn independently of each other, as
 *  their probabilities say. A request without a seed is drawn by its prompt. */
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

/** The router's final distribution, for exact values. */
export function policyOfRouter(router: Router): PolicyOf {
  return (context, candidates) => distribution(context, candidates, router).probabilities;
}

/** Every model in the order of the list, the first that can be had. */
function firstOf(models: readonly string[]): StaticTable {
  return parseStaticTable(
    `schema: rollbook.static-table.v1\ndefault: ${JSON.stringify(models)}\n`,
    "the list of models",
  );
}

/** A policy without weights: its temperature is all there is of it. */
interface PriceByLength extends DecisionPolicy {
  readonly temperature: number;
}

/** P ∝ exp(length · price / T): the longer a prompt, the dearer the model; short prompts lean to cheap ones. */
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
