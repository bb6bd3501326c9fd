/** LinUCB with one linear model per candidate (Li, Chu, Langford and Schapire, 2010).
 *  In: the sums of decisions with outcomes. Out: a "linucb" model: A⁻¹ and θ̂ = A⁻¹b for each candidate,
 *  A = λI + Σxxᵀ, b = Σrx. The state keeps sums, not the inverse, because the sums of several processes add up. */
import { type Digest, RollbookError } from "../../base/index.ts";
import type { FeatureSpec, PolicyModel, Tensors } from "../../policy/index.ts";
import type { BanditStatistics } from "../bandit/index.ts";
import { ridgeInverse } from "../linear/index.ts";
import { rewardRange } from "./ucb1.ts";

export interface LinearBanditOptions {
  readonly spec: FeatureSpec;
  /** λ: strength of the prior. */
  readonly ridge?: number;
}

export interface LinUcbOptions extends LinearBanditOptions {
  /** Factor of the confidence width; 0 (the default) takes the best mean. */
  readonly alpha?: number;
}

/** `data`: the digest of the summed decisions. */
export function linUcbModel(
  statistics: BanditStatistics,
  { spec, ridge = 1, alpha = 0, data }: LinUcbOptions & { readonly data: Digest },
): PolicyModel {
  return {
    kind: "linucb",
    spec,
    arms: [...statistics.arms.keys()],
    config: { algorithm: "linucb", data, ridge, alpha },
    settings: { ridge, alpha, ...rewardRange(statistics) },
    tensors: linearTensors(statistics, ridge),
  };
}

export function linearTensors({ size, arms }: BanditStatistics, ridge: number): Tensors {
  if (!(ridge > 0))
    throw new RollbookError("bad-options", { ridge }, `the ridge is ${ridge}: give a number above 0.`);
  const inverse = new Float64Array(arms.size * size * size);
  const weights = new Float64Array(arms.size * size);
  [...arms.values()].forEach(({ gram, response }, a) => {
    const own = ridgeInverse(gram, size, ridge);
    inverse.set(own, a * size * size);
    for (let i = 0; i < size; i++) {
      let sum = 0;
      for (let j = 0; j < size; j++) sum += own[i * size + j]! * response[j]!;
      weights[a * size + i] = sum;
    }
  });
  return {
    inverse: { shape: [arms.size, size, size], data: inverse },
    weights: { shape: [arms.size, size], data: weights },
  };
}
