/** UCB1: counts and mean rewards per candidate; ignores the context. Rewards should lie in 0 … 1.
 *  In: the sums of decisions with outcomes. Out: a "ucb1" model. */
import type { Digest } from "../../base/index.ts";
import { DEFAULT_FEATURES, type PolicyModel } from "../../policy/index.ts";
import type { BanditStatistics } from "../bandit/index.ts";

export interface UcbOptions {
  /** Factor of the confidence width; 1 is Auer's, 0 (the default) takes the best mean. */
  readonly exploration?: number;
}

/** `data`: the digest of the summed decisions. */
export function ucb1Model(
  statistics: BanditStatistics,
  { exploration = 0, data }: UcbOptions & { readonly data: Digest },
): PolicyModel {
  return {
    kind: "ucb1",
    spec: { ...DEFAULT_FEATURES, wordBuckets: 0 },
    arms: [...statistics.arms.keys()],
    config: { algorithm: "ucb1", data, exploration },
    settings: { exploration, ...rewardRange(statistics) },
    tensors: tallyTensors(statistics),
  };
}

/** The range of rewards. A bandit's confidence is its margin divided by this range. */
export function rewardRange({ low, high }: BanditStatistics): { range?: number } {
  return high > low ? { range: high - low } : {};
}

/** Number of choices and sum of rewards of each arm. */
export function tallyTensors({ arms }: BanditStatistics): PolicyModel["tensors"] {
  const all = [...arms.values()];
  const shape = [all.length];
  return {
    counts: { shape, data: Float64Array.from(all, ({ count }) => count) },
    sums: { shape, data: Float64Array.from(all, ({ sum }) => sum) },
  };
}
