export {
  type Banded,
  type Contender,
  type ContenderReport,
  checkData,
  type DataFinding,
  type Evaluation,
  EvaluationData,
  evaluatePolicy,
  evaluateTarget,
  frontier,
  type JudgedRow,
  type JudgedRows,
  type KnownTargetReport,
  type Measure,
  type RouterSetup,
  routed,
  routerOf,
  type TargetProbabilities,
  toJudgedRows,
  totalRewardRows,
  type Valued,
} from "./evaluate/index.ts";
export { calibrateFloor, realisedRisk } from "./floor.ts";
export { evaluateExactly, gateExactly, isFullyKnown, isGatedExactly } from "./full-information.ts";
export {
  bestPassing,
  type GatedCandidate,
  type GateMethod,
  type GateOptions,
  type GateRule,
  gatePolicies,
  triedFault,
} from "./gate.ts";
export { analyzeRewards, type RewardDistribution, type RewardReport, rewardedOf } from "./reward-analysis.ts";
