export { type Learner, readsChains } from "./learners.ts";
export { readAnySpec, readSpec, readValueSpec } from "./read-spec.ts";
export { type SealWeightsRequest, sealWeights } from "./seal-weights.ts";
export { type TrainedPolicy, type TrainRequest, trainPolicy } from "./train.ts";
export { type OnlineTrained, type OnlineWorld, trainOnline } from "./train-online.ts";
export { countParts, requireTraining, splitAdmitted } from "./training-batch.ts";
