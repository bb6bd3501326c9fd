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
} from "../keep/admit/split.ts";
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
export { OnlineRegressor, type OnlineRegressorOptions } from "./online-regressor.ts";
export { makeSkipGrams, type SkipGramOptions } from "./skip-grams.ts";
export { gatherRows, pickRows, type SparseRows } from "./sparse-rows.ts";
export { hasSeen, type SeenUnits, splitOf, withSplit } from "./split.ts";
export { type BcOptions, type BcReport, type Cloned, trainBc } from "./train/bc.ts";
export { type LinearBanditOptions, type LinUcbOptions, linUcbModel, trainLinUcb } from "./train/linucb.ts";
export { type Logistic, type LogisticData, type LogisticOptions, trainLogistic } from "./train/logistic.ts";
export {
  type LoggedChoice,
  makeOnlineBandit,
  type OnlineBandit,
  type OnlineBanditOptions,
  type ProgressiveTerms,
} from "./train/online-bandit.ts";
export { predictRow, type Ridge, type RidgeData, type RidgeOptions, trainRidge } from "./train/ridge.ts";
export {
  baselineOf,
  type FittedTable,
  fitStaticTable,
  type TableSource,
  withBaseline,
} from "./train/table.ts";
export {
  type ThompsonLinearOptions,
  type ThompsonOptions,
  thompsonBetaModel,
  thompsonLinearModel,
  trainThompsonBeta,
  trainThompsonLinear,
} from "./train/thompson.ts";
export { trainUcb1, type UcbOptions, ucb1Model } from "./train/ucb1.ts";
export {
  type BanditState,
  type BanditUpdate,
  type FreshDecisions,
  type UnitRow,
  updateBandit,
} from "./update-bandit.ts";
export { rescaleWords, wordScaleOf } from "./word-scale.ts";
