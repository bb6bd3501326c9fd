export type { Learner } from "./learners.ts";
export { readSpec } from "./read-spec.ts";
export { type TrainedPolicy, type TrainRequest, trainPolicy } from "./train.ts";
export { requireTraining, splitAdmitted } from "./training-batch.ts";
