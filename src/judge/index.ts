export { type Contender, type Field, routed, routerOf } from "./evaluate/contenders.ts";
export { type Banded, type CostQuality, type Hull, hullArea } from "./evaluate/cost-quality.ts";
export {
  type Comparison,
  type ContenderReport,
  type Evaluation,
  evaluatePolicy,
  type Valued,
} from "./evaluate/evaluate.ts";
export {
  type JudgedRow,
  type JudgedRows,
  MEASURES,
  type Measure,
  type Measures,
  measuresOf,
  toJudgedRows,
} from "./evaluate/judged-row.ts";
export { type Distribution, Judging, type JudgingOptions, type Support } from "./evaluate/judging.ts";
export { type Liveness, livenessOf } from "./evaluate/liveness.ts";
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
