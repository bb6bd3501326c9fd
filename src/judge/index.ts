export {
  type Banded,
  type Comparison,
  type Contender,
  type ContenderReport,
  type CostQuality,
  type Evaluation,
  EvaluationData,
  type EvaluationOptions,
  evaluatePolicy,
  type Hull,
  hullArea,
  type JudgedRow,
  type JudgedRows,
  type Liveness,
  livenessOf,
  MEASURES,
  type Measure,
  type Measures,
  measuresOf,
  type RouterSetup,
  routed,
  routerOf,
  type Support,
  toJudgedRows,
  type Valued,
} from "./evaluate/index.ts";
export { calibrateFloor, type FloorChoice, type RiskTerms, realisedRisk } from "./floor.ts";
export { apgr, cpt, type FrontierPoint, frontier, type RoutedOutcomes } from "./frontier.ts";
export {
  bestPassing,
  type GateCheck,
  type GatedCandidate,
  type GateMethod,
  type GateOptions,
  type GateRule,
  gatePolicies,
} from "./gate.ts";
export { analyzeRewards, type RewardDistribution, type RewardReport, rewardedOf } from "./reward-analysis.ts";
