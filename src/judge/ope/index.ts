export { type BootstrapOptions, bootstrap, bootstrapInterval, percentileInterval } from "./bootstrap.ts";
export { type BoundOptions, bernsteinInterval, hoeffdingInterval } from "./bounds.ts";
export { chainDr } from "./chain-dr.ts";
export { ConfidenceSequence, confidenceSequence } from "./confidence-sequence.ts";
export { type Diagnostics, diagnose, type Unsupported } from "./diagnostics.ts";
export { directMethod } from "./direct-method.ts";
export { doublyRobust } from "./doubly-robust.ts";
export { drShrinkage } from "./dr-shrinkage.ts";
export { difference, type Estimate, influenceOf, type Ratio, standardError } from "./estimate.ts";
export { crossFitQ, type FittedQOptions } from "./fitted-q.ts";
export { type Interval, type Range, weightedRange } from "./interval.ts";
export { ips } from "./ips.ts";
export {
  type Candidates,
  type Chain,
  type Context,
  checkDecisions,
  type LoggedDecisions,
  weightsOf,
} from "./logged-decisions.ts";
export { naiveAgreement } from "./naive.ts";
export {
  type Disagreement,
  type Estimated,
  judgePolicy,
  type PanelOptions,
  type PanelRow,
  type Refused,
  type Verdict,
} from "./panel.ts";
export { verdictText } from "./panel-text.ts";
export { perDecisionIs } from "./per-decision-is.ts";
export { type PropensityOptions, withEstimatedPropensities } from "./propensity-model.ts";
export { crossFitMatrix, crossFitRewards, type RewardModelOptions } from "./reward-model.ts";
export { predictionsFrom, type RewardPredictions } from "./reward-predictions.ts";
export { GAMMAS, type SensitivityBound, sensitivityBounds } from "./sensitivity.ts";
export { lambdaGrid, slope } from "./slope.ts";
export { snips } from "./snips.ts";
export { studentInterval } from "./student-interval.ts";
export { normalQuantile, studentCdf, studentQuantile } from "./student-t.ts";
export {
  explainFault,
  SUPPORT_LIMITS,
  type SupportFault,
  type SupportLimits,
  supportFaults,
} from "./support.ts";
export { switchDr } from "./switch-dr.ts";
export { weightedPerDecisionIs } from "./weighted-per-decision-is.ts";
