/** The average request of a policy: the means of its features over its training rows.
 *  In: a model, contexts. Out: the model with these means; the means of a model.
 *  Checkpoints of earlier versions have none. */
import type { PolicyModel } from "../checkpoint.ts";
import type { DecisionContext } from "../decision.ts";
import { makeFeatureReader, type SparseVector } from "../features.ts";
import { linearParts } from "../linear-policy.ts";
import { firstSpecOf, tensorOf } from "../model-parts.ts";
import { openValueModel } from "../value/index.ts";

const MEANS = "usual_features";

/** The order of the contexts affects the last bits. A policy whose scores have no parts is returned unchanged. */
export function withUsualRequest(model: PolicyModel, contexts: readonly DecisionContext[]): PolicyModel {
  const reader = contextReader(model);
  if (reader === undefined || contexts.length === 0) return model;
  const means = new Float64Array(reader.size);
  for (const context of contexts) {
    const { indices, values, count } = reader.context(context);
    for (let e = 0; e < count; e++) means[indices[e]!] = means[indices[e]!]! + values[e]!;
  }
  for (let i = 0; i < means.length; i++) means[i] = means[i]! / contexts.length;
  return { ...model, tensors: { ...model.tensors, [MEANS]: { shape: [means.length], data: means } } };
}

/** Undefined if the checkpoint has no means. */
export function usualRequest(model: PolicyModel, size: number): Float64Array | undefined {
  return model.tensors[MEANS] === undefined ? undefined : tensorOf(model, MEANS, [size]);
}

interface ContextReader {
  readonly size: number;
  context(context: DecisionContext): SparseVector;
}

/** The reader of the policy's features. Undefined: its scores are not sums over features. */
export function contextReader(model: PolicyModel): ContextReader | undefined {
  switch (model.kind) {
    case "softmax-linear":
      return linearParts(model).reader;
    case "linucb":
    case "thompson-linear":
      return makeFeatureReader(firstSpecOf(model));
    case "value":
      return openValueModel(model).reader;
    case "ucb1":
    case "thompson-beta":
    case "mlp-greedy":
    case "mlp-softmax":
      return undefined;
    default:
      return model.kind satisfies never;
  }
}
