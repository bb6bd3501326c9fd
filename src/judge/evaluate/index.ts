export { type Contender, type RouterSetup, routed, routerOf } from "./contenders.ts";
export { type Banded, type CostQuality, type Hull, hullArea } from "./cost-quality.ts";
export {
  type Comparison,
  type ContenderReport,
  type Evaluation,
  evaluatePolicy,
  type Valued,
} from "./evaluate.ts";
export {
  type Distribution,
  EvaluationData,
  type EvaluationOptions,
  type Support,
} from "./evaluation-data.ts";
export {
  isBurden,
  type JudgedRow,
  type JudgedRows,
  MEASURES,
  type Measure,
  type Measures,
  measuresOf,
  qualityOf,
  requireRows,
  toJudgedRows,
} from "./judged-row.ts";
export { type Liveness, livenessOf } from "./liveness.ts";
