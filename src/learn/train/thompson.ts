/** Thompson sampling: Beta posteriors for rewards in 0 … 1 (Bernoulli), Gaussian posteriors over linear models
 *  (linear). In: the sums of decisions with outcomes. Out: a "thompson-beta" or "thompson-linear" model. It states the
 *  number of Monte Carlo draws and the floor of its probabilities. */
import { type Digest, RollbookError } from "../../base/index.ts";
import { DEFAULT_DRAWS, DEFAULT_FEATURES, DEFAULT_FLOOR, type PolicyModel } from "../../policy/index.ts";
import type { BanditStatistics } from "../bandit/index.ts";
import { type LinearBanditOptions, linearTensors } from "./linucb.ts";
import { tallyTensors } from "./ucb1.ts";

export interface ThompsonOptions {
  readonly draws?: number;
  readonly floor?: number;
  /** Seeds the draws. */
  readonly seed: number;
}

export interface ThompsonLinearOptions extends ThompsonOptions, LinearBanditOptions {
  /** Factor of the posterior's standard deviation. */
  readonly spread?: number;
}

/** `data`: the digest of the summed decisions. */
export function thompsonBetaModel(
  statistics: BanditStatistics,
  options: ThompsonOptions & { readonly data: Digest },
): PolicyModel {
  const { low, high } = statistics;
  if (low < 0 || high > 1)
    throw new RollbookError(
      "bad-training-data",
      { low, high },
      `rewards reach from ${low} to ${high}, not in 0 … 1. Rescale the rewards, or train the linear form (--form linear).`,
    );
  const settings = settingsOf(options);
  const { draws, floor } = settings;
  return {
    kind: "thompson-beta",
    spec: { ...DEFAULT_FEATURES, wordBuckets: 0 },
    arms: [...statistics.arms.keys()],
    config: { algorithm: "thompson-beta", data: options.data, draws, floor },
    settings,
    tensors: tallyTensors(statistics),
  };
}

export function thompsonLinearModel(
  statistics: BanditStatistics,
  options: ThompsonLinearOptions & { readonly data: Digest },
): PolicyModel {
  const { spec, ridge = 1, spread = 1, data } = options;
  const settings = settingsOf(options);
  const { draws, floor } = settings;
  return {
    kind: "thompson-linear",
    spec,
    arms: [...statistics.arms.keys()],
    config: { algorithm: "thompson-linear", data, draws, floor, ridge, spread },
    settings: { ...settings, ridge, spread },
    tensors: linearTensors(statistics, ridge),
  };
}

function settingsOf({ draws = DEFAULT_DRAWS, floor = DEFAULT_FLOOR, seed }: ThompsonOptions) {
  if (Number.isInteger(draws) && draws > 0 && floor >= 0 && floor < 1) return { draws, floor, seed };
  throw new RollbookError(
    "bad-options",
    { draws, floor },
    `draws is ${draws}, floor ${floor}. Draw at least once, with a floor in 0 … 1.`,
  );
}
