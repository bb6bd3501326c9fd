export {
  checkSplit,
  DEFAULT_SPLIT,
  partOf,
  SPLIT_PARTS,
  SPLIT_UNITS,
  type SplitPart,
  type SplitRule,
  type SplitUnit,
  TRAIN_ON_ALL,
} from "../keep/admit/index.ts";
export {
  type BanditDefinition,
  disjointIncrements,
  type OpenIncrement,
  openIncrements,
  sealIncrement,
  statisticsIn,
  unitsIn,
} from "./bandit-increment.ts";
export {
  type ArmSums,
  BanditCounter,
  type BanditStatistics,
  mergeStatistics,
  statisticsOf,
} from "./bandit-statistics.ts";
export { calibrationError, fitTemperature, logLoss, type ScoredRows } from "./calibrate.ts";
export {
  armsOf,
  type DecisionData,
  type DecisionRow,
  digestRows,
  type LoggedCandidate,
  type LoggedRow,
  labelledRows,
  type RewardTerm,
  type RewardTerms,
  unitOf,
} from "./decision-row.ts";
export { collectFields, denseSpec, fieldsOf } from "./dense-spec.ts";
export { gatherRows, pickRows, type SparseRows } from "./sparse-rows.ts";
export { hasSeen, type SeenUnits, splitOf, withSplit } from "./split.ts";
export {
  type BcOptions,
  type BcReport,
  baselineOf,
  type Cloned,
  type FittedTable,
  fitStaticTable,
  type LinearBanditOptions,
  type LinUcbOptions,
  type Logistic,
  type LogisticData,
  type LogisticOptions,
  linUcbModel,
  type TableSource,
  type ThompsonLinearOptions,
  type ThompsonOptions,
  thompsonBetaModel,
  thompsonLinearModel,
  trainBc,
  trainLinUcb,
  trainLogistic,
  trainThompsonBeta,
  trainThompsonLinear,
  trainUcb1,
  type UcbOptions,
  ucb1Model,
  withBaseline,
} from "./train/index.ts";
export {
  type BanditState,
  type BanditUpdate,
  type FreshDecisions,
  type UnitRow,
  updateBandit,
} from "./update-bandit.ts";
export { rescaleWords, wordScaleOf } from "./word-scale.ts";
