/** The estimators of a panel, in the order of the output. A new estimator is a file in `estimators/` and an entry here.
 *  In: decisions, predictions. Out: estimates, each with its kind of bias. Pure. */
import {
  chainDr,
  directMethod,
  doublyRobust,
  drShrinkage,
  type Estimate,
  fittedQValue,
  ips,
  lambdaGrid,
  perDecisionIs,
  snips,
  switchDr,
  tuneLambda,
  weightedPerDecisionIs,
} from "./estimators/index.ts";
import { type LoggedDecisions, weightsOf } from "./log/index.ts";
import type { RewardPredictions } from "./models/index.ts";

/** Reason why the expectation of an estimate may differ from the policy's value, beyond order 1/n. Estimates without
 *  bias must agree with each other; biased estimates need not. */
export type EstimateBias = "none" | "model error" | "cut weights";

export interface PanelEntry {
  readonly estimate: Estimate;
  /** The chosen tuning parameter of Switch-DR and DRos. */
  readonly lambda?: number;
  readonly bias: EstimateBias;
}

type PanelEstimator = {
  readonly bias: EstimateBias;
} & (
  | { readonly needs: "propensities"; estimate(log: LoggedDecisions): Omit<PanelEntry, "bias"> }
  | {
      readonly needs: "predictions";
      estimate(log: LoggedDecisions, q: RewardPredictions): Omit<PanelEntry, "bias">;
    }
);

const DECISION_ESTIMATORS: readonly PanelEstimator[] = [
  { needs: "propensities", bias: "none", estimate: (log) => ({ estimate: ips(log) }) },
  { needs: "propensities", bias: "none", estimate: (log) => ({ estimate: snips(log) }) },
  { needs: "predictions", bias: "model error", estimate: (log, q) => ({ estimate: directMethod(log, q) }) },
  { needs: "predictions", bias: "none", estimate: (log, q) => ({ estimate: doublyRobust(log, q) }) },
  {
    needs: "predictions",
    bias: "cut weights",
    estimate: (log, q) => tuneLambda(lambdaGrid(weightsOf(log)), (lambda) => switchDr(log, q, lambda)),
  },
  {
    needs: "predictions",
    bias: "cut weights",
    estimate(log, q) {
      // ŵ ≤ √λ/2: squared weights put the cap on the same scale as in Switch-DR.
      const grid = lambdaGrid(weightsOf(log)).map((w) => 4 * w * w);
      return tuneLambda([Number.POSITIVE_INFINITY, ...grid], (lambda) => drShrinkage(log, q, lambda));
    },
  },
];

const CHAIN_ESTIMATORS: readonly PanelEstimator[] = [
  { needs: "propensities", bias: "none", estimate: (log) => ({ estimate: perDecisionIs(log) }) },
  { needs: "propensities", bias: "none", estimate: (log) => ({ estimate: weightedPerDecisionIs(log) }) },
  { needs: "predictions", bias: "none", estimate: (log, q) => ({ estimate: chainDr(log, q) }) },
  { needs: "predictions", bias: "model error", estimate: (log, q) => ({ estimate: fittedQValue(log, q) }) },
];

/** All entries. Without predictions, only the estimators that need none. */
export function panelEntries(log: LoggedDecisions, q: RewardPredictions | undefined): PanelEntry[] {
  return entriesOf(estimatorsOf(log), log, q);
}

/** The estimates that must agree with each other. */
export function unbiasedEstimates(log: LoggedDecisions, q: RewardPredictions | undefined): Estimate[] {
  const unbiased = estimatorsOf(log).filter(({ bias }) => bias === "none");
  return entriesOf(unbiased, log, q).map(({ estimate }) => estimate);
}

function estimatorsOf({ chain }: LoggedDecisions): readonly PanelEstimator[] {
  return chain === undefined ? DECISION_ESTIMATORS : CHAIN_ESTIMATORS;
}

function entriesOf(
  estimators: readonly PanelEstimator[],
  log: LoggedDecisions,
  q: RewardPredictions | undefined,
): PanelEntry[] {
  return estimators.flatMap((each) => {
    const { bias } = each;
    if (each.needs === "propensities") return [{ ...each.estimate(log), bias }];
    return q === undefined ? [] : [{ ...each.estimate(log, q), bias }];
  });
}
