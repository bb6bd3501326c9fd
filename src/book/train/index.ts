export type { Learner } from "./learners.ts";
export { readAnySpec, readSpec, readValueSpec } from "./read-spec.ts";
export { type TrainedPolicy, type TrainRequest, trainPolicy } from "./train.ts";
export { requireTraining, splitAdmitted } from "./training-batch.ts";
