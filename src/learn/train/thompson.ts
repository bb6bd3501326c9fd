/** Thompson sampling: Beta posteriors for rewards in 0 … 1 (Bernoulli), Gaussian ones over linear models (linear).
 *  In: decisions with outcomes. Out: a "thompson-beta" or "thompson-linear" model with the number of Monte Carlo draws and
 *  the floor behind every probability it will answer. */
import { RollbookError } from "../../base/errors.ts";
import { DEFAULT_DRAWS, DEFAULT_FLOOR } from "../../policy/bandit-policy.ts";
import { DEFAULT_FEATURES } from "../../policy/feature-spec.ts";
import type { PolicyModel } from "../../policy/index.ts";
import { armsOf, type DecisionData, labelledRows } from "../decision-row.ts";
import { type LinearBanditOptions, linearState } from "./linucb.ts";
import { tallyTensors } from "./ucb1.ts";

export interface ThompsonOptions {
  readonly draws?: number;
  readonly floor?: number;
  /** Seeds the draws, together with the question. */
  readonly seed: number;
}

export function trainThompsonBeta(data: DecisionData, options: ThompsonOptions): PolicyModel {
  const arms = armsOf(data.rows);
  const rows = labelledRows(data.rows);
  const outside = rows.find(({ reward }) => reward < 0 || reward > 1);
  if (outside !== undefined)
    throw new RollbookError(
      "bad-training-data",
      { id: outside.id, reward: outside.reward },
      `row ${outside.id}: reward ${outside.reward} is not in 0 … 1. Rescale the rewards, or train the linear form.`,
    );
  const settings = settingsOf(options);
  return {
    kind: "thompson-beta",
    spec: { ...DEFAULT_FEATURES, wordBuckets: 0 },
    arms,
    config: { algorithm: "thompson-beta", data: data.digest, draws: settings.draws, floor: settings.floor },
    settings,
    tensors: tallyTensors(arms, rows),
  };
}

export function trainThompsonLinear(
  data: DecisionData,
  options: ThompsonOptions & LinearBanditOptions & { readonly spread?: number },
): PolicyModel {
  const { spec, ridge = 1, spread = 1 } = options;
  const { arms, tensors } = linearState(data, { spec, ridge });
  const settings = settingsOf(options);
  const { draws, floor } = settings;
  return {
    kind: "thompson-linear",
    spec,
    arms,
    config: { algorithm: "thompson-linear", data: data.digest, draws, floor, ridge, spread },
    settings: { ...settings, ridge, spread },
    tensors,
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
