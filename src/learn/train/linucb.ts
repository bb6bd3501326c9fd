/** LinUCB with one linear model per candidate (Li, Chu, Langford and Schapire, 2010).
 *  In: decisions with outcomes. Out: a "linucb" model: A⁻¹ and θ̂ = A⁻¹b for each candidate, A = λI + Σxxᵀ, b = Σrx.
 *  A⁻¹ is kept by Sherman–Morrison, so one outcome costs d² and no matrix is ever inverted. */
import { RollbookError } from "../../base/errors.ts";
import type { FeatureSpec, PolicyModel, SparseVector, Tensors } from "../../policy/index.ts";
import { makeFeatureReader } from "../../policy/index.ts";
import { armsOf, type DecisionData, labelledRows } from "../decision-row.ts";

export interface LinearBanditOptions {
  readonly spec: FeatureSpec;
  /** λ: the prior's strength. */
  readonly ridge?: number;
}

/** The state is quadratic in the features: more would be slow and large, and words belong in BC. */
export const MOST_FEATURES = 512;

export function trainLinUcb(
  data: DecisionData,
  { spec, ridge = 1, alpha = 1 }: LinearBanditOptions & { readonly alpha?: number },
): PolicyModel {
  const { arms, tensors } = linearState(data, { spec, ridge });
  return {
    kind: "linucb",
    spec,
    arms,
    config: { algorithm: "linucb", data: data.digest, ridge, alpha },
    settings: { ridge, alpha },
    tensors,
  };
}

export function linearState(
  data: DecisionData,
  { spec, ridge = 1 }: LinearBanditOptions,
): { arms: string[]; tensors: Tensors } {
  const reader = makeFeatureReader(spec);
  const { size } = reader;
  if (size > MOST_FEATURES || !(ridge > 0))
    throw new RollbookError(
      "bad-options",
      { size, ridge },
      `linear bandits take at most ${MOST_FEATURES} features and a ridge above 0; these are ${size} and ${ridge}. Use fewer wordBuckets.`,
    );
  const arms = armsOf(data.rows);
  const places = new Map(arms.map((id, i) => [id, i]));
  const states = arms.map(() => newArm(size, ridge));
  for (const { context, candidates, chosen, reward } of labelledRows(data.rows))
    observe(states[places.get(candidates[chosen]!.id)!]!, reader.context(context), reward);
  const inverse = new Float64Array(arms.length * size * size);
  const weights = new Float64Array(arms.length * size);
  for (const [a, state] of states.entries()) {
    inverse.set(state.inverse, a * size * size);
    weights.set(weightsOf(state), a * size);
  }
  return {
    arms,
    tensors: {
      inverse: { shape: [arms.length, size, size], data: inverse },
      weights: { shape: [arms.length, size], data: weights },
    },
  };
}

export interface LinearArm {
  readonly size: number;
  readonly inverse: Float64Array;
  readonly response: Float64Array;
}

export function newArm(size: number, ridge: number): LinearArm {
  const inverse = new Float64Array(size * size);
  for (let i = 0; i < size; i++) inverse[i * size + i] = 1 / ridge;
  return { size, inverse, response: new Float64Array(size) };
}

/** A⁻¹ ← A⁻¹ − A⁻¹x(A⁻¹x)ᵀ / (1 + xᵀA⁻¹x);  b ← b + r·x. */
export function observe({ size, inverse, response }: LinearArm, x: SparseVector, reward: number): void {
  const image = new Float64Array(size);
  for (let e = 0; e < x.count; e++) {
    const base = x.indices[e]! * size;
    for (let i = 0; i < size; i++) image[i] = image[i]! + inverse[base + i]! * x.values[e]!;
  }
  let denominator = 1;
  for (let e = 0; e < x.count; e++) denominator += x.values[e]! * image[x.indices[e]!]!;
  for (let i = 0; i < size; i++) {
    const factor = image[i]! / denominator;
    if (factor === 0) continue;
    for (let j = 0; j < size; j++) inverse[i * size + j] = inverse[i * size + j]! - factor * image[j]!;
  }
  for (let e = 0; e < x.count; e++) {
    const at = x.indices[e]!;
    response[at] = response[at]! + reward * x.values[e]!;
  }
}

function weightsOf({ size, inverse, response }: LinearArm): Float64Array {
  const weights = new Float64Array(size);
  for (let i = 0; i < size; i++) {
    let sum = 0;
    for (let j = 0; j < size; j++) sum += inverse[i * size + j]! * response[j]!;
    weights[i] = sum;
  }
  return weights;
}
