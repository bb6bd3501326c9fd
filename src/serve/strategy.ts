/** Implements a policy without training: softmax over the declared facts of the configuration.
 *  In: declared qualities and prices. Out: a DecisionPolicy, with the digest of those numbers. */
import { digestJson, parseId, softmax } from "../base/index.ts";
import type { DecisionPolicy, DeclaredSoftmax } from "../policy/index.ts";
import { worthOf } from "./candidates.ts";
import type { RouterConfig } from "./config.ts";

/** Settings of the strategy, as the configuration states them. */
export function softmaxOf({ candidates, costWeight, temperature }: RouterConfig): DeclaredSoftmax {
  const stated = Object.entries(candidates).map(([id, { quality, callPrice }]) => ({
    ...{ id, quality: quality! },
    ...(callPrice === undefined ? {} : { callPrice }),
  }));
  return { temperature, costWeight, candidates: stated };
}

/** P ∝ exp((quality − costWeight · price of a call) / temperature), over the selectable candidates that are
 *  declared. */
export function declaredSoftmax(family: string, declared: DeclaredSoftmax): DecisionPolicy {
  const { candidates, costWeight, temperature } = declared;
  const worth = new Map(
    candidates.map(({ id, ...facts }) => [id, worthOf(facts, costWeight)! / temperature]),
  );
  const digest = digestJson("rollbook.declared-softmax.v1", {
    worth: Object.fromEntries(worth),
  });
  return {
    family,
    revision: { id: parseId(`declared-${digest.slice(7, 19)}`), digest },
    declared,
    answer(_context, asked) {
      const scores = Float64Array.from(asked, ({ id, selectable }) =>
        selectable ? (worth.get(id) ?? Number.NEGATIVE_INFINITY) : Number.NEGATIVE_INFINITY,
      );
      const open = asked.filter(({ selectable }) => selectable).length;
      // For undeclared candidates the policy answers uniformly with confidence 0.
      if (!scores.some((score) => score > Number.NEGATIVE_INFINITY))
        return { probabilities: asked.map((one) => (one.selectable ? 1 / open : 0)), confidence: 0 };
      softmax(scores);
      return { probabilities: Array.from(scores), confidence: 1 };
    },
  };
}
