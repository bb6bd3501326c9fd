export { type Learner, readsChains } from "./learners.ts";
export { readAnySpec, readSpec, readValueSpec } from "./read-spec.ts";
export { sealWeights } from "./seal-weights.ts";
export { type TrainedPolicy, trainPolicy } from "./train.ts";
export { type OnlineTrained, type OnlineWorld, trainOnline } from "./train-online.ts";
export { countParts, requireTraining, splitAdmitted } from "./training-batch.ts";
