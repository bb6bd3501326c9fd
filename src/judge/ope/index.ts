export { type Diagnostics, diagnose, type Unsupported } from "./diagnostics.ts";
export { chainDr } from "./estimators/chain-dr.ts";
export { directMethod } from "./estimators/direct-method.ts";
export { doublyRobust } from "./estimators/doubly-robust.ts";
export { drShrinkage } from "./estimators/dr-shrinkage.ts";
export { difference, type Estimate, influenceOf, type Ratio, standardError } from "./estimators/estimate.ts";
export { ips } from "./estimators/ips.ts";
export { naiveAgreement } from "./estimators/naive.ts";
export { perDecisionIs } from "./estimators/per-decision-is.ts";
export { lambdaGrid, slope } from "./estimators/slope.ts";
export { snips } from "./estimators/snips.ts";
export { switchDr } from "./estimators/switch-dr.ts";
export { weightedPerDecisionIs } from "./estimators/weighted-per-decision-is.ts";
export {
  type BootstrapOptions,
  bootstrap,
  bootstrapInterval,
  percentileInterval,
} from "./intervals/bootstrap.ts";
export { type BoundOptions, bernsteinInterval, hoeffdingInterval } from "./intervals/bounds.ts";
export { ConfidenceSequence, confidenceSequence } from "./intervals/confidence-sequence.ts";
export { type Interval, type Range, weightedRange } from "./intervals/interval.ts";
export { GAMMAS, type SensitivityBound, sensitivityBounds } from "./intervals/sensitivity.ts";
export { studentInterval } from "./intervals/student-interval.ts";
export {
  type Candidates,
  type Chain,
  type Context,
  checkDecisions,
  type LoggedDecisions,
  weightsOf,
} from "./log/logged-decisions.ts";
export { normalQuantile, studentCdf, studentQuantile } from "./math/student-t.ts";
export { crossFitQ, type FittedQOptions } from "./models/fitted-q.ts";
export { type PropensityOptions, withEstimatedPropensities } from "./models/propensity-model.ts";
export { crossFitMatrix, crossFitRewards, type RewardModelOptions } from "./models/reward-model.ts";
export { predictionsFrom, type RewardPredictions } from "./models/reward-predictions.ts";
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
export {
  explainFault,
  SUPPORT_LIMITS,
  type SupportFault,
  type SupportLimits,
  supportFaults,
} from "./support.ts";
