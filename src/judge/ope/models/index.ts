export { crossFitQ, type FittedQOptions } from "./fitted-q.ts";
export { type PropensityOptions, withEstimatedPropensities } from "./propensity-model.ts";
export { crossFitMatrix, crossFitRewards, type RewardModelOptions } from "./reward-model.ts";
export { predictionsFrom, type RewardPredictions } from "./reward-predictions.ts";
