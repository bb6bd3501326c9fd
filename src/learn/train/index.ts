export { type BcOptions, type BcReport, type Cloned, trainBc } from "./bc.ts";
export { type LinearBanditOptions, type LinUcbOptions, linUcbModel, trainLinUcb } from "./linucb.ts";
export { type Logistic, type LogisticData, type LogisticOptions, trainLogistic } from "./logistic.ts";
export { baselineOf, type FittedTable, fitStaticTable, type TableSource, withBaseline } from "./table.ts";
export {
  type ThompsonLinearOptions,
  type ThompsonOptions,
  thompsonBetaModel,
  thompsonLinearModel,
  trainThompsonBeta,
  trainThompsonLinear,
} from "./thompson.ts";
export { trainUcb1, type UcbOptions, ucb1Model } from "./ucb1.ts";
