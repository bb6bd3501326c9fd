/** The door of book/: everything that can be done with a book. Every function takes an open book, or a path. */

export { RollbookError } from "../base/index.ts";
export type { Gateway, GatewayConfig } from "../collect/gateway/index.ts";
export {
  defineRollout,
  type Launch,
  type Payload,
  type RolloutContext,
  type RolloutFunction,
  type RolloutOutput,
  type RolloutResult,
} from "../collect/rollout/index.ts";
export type { ReadableBatch } from "../keep/batch/index.ts";
export type { EraseReport } from "../keep/erase/index.ts";
export {
  type BatchDetails,
  type CutRequest,
  compareBatches,
  cutBatch,
  type ExportedBatch,
  exportBatch,
  extendReplay,
  listBatches,
  type NewReplayRequest,
  type ReplayRequest,
  type ReplayWritten,
  readBatch,
  showBatch,
  writeReplay,
} from "./batches/index.ts";
export {
  type AgentChoice,
  type GatewayRequest,
  type Identity,
  identityOf,
  type LaunchRequest,
  launch,
  type OpenGateway,
  openGateway,
  type RunningWorker,
  startWorker,
  type Tasks,
  type WorkDone,
  type WorkerRequest,
} from "./collect/index.ts";
export {
  type AdmittedDecisions,
  type DecisionRequest,
  type DecisionSource,
  decisionRows,
} from "./decisions/index.ts";
export { type ImportInput, type ImportReport, type ImportRequest, importRollouts } from "./import/index.ts";
export {
  type EvaluateRequest,
  evaluateCheckpoint,
  type GateRequest,
  type GateResult,
  gateCheckpoints,
  type PolicyEvaluation,
} from "./judge/index.ts";
export {
  collectGarbage,
  type EraseRequest,
  eraseRollouts,
  type GarbageReport,
  type Verified,
  type VerifyRequest,
  verifyBook,
  verifyNamed,
} from "./maintain/index.ts";
export {
  type BookOnDisk,
  bookOver,
  initBook,
  type OpenBook,
  type OpenBookOptions,
  openBook,
  rebuildCatalog,
} from "./open/index.ts";
export {
  type AdmissionResult,
  type AdmittedRequest,
  type AdmittedRollouts,
  addFeedback,
  admitRollouts,
  admittedRollouts,
  exportRollout,
  type FeedbackAdded,
  type FeedbackRequest,
  type FreshnessChoice,
  listRevisions,
  listRollouts,
  type RolloutDetails,
  type RolloutFilter,
  type RolloutQuery,
  type RolloutRow,
  releaseRollout,
  sendFeedback,
  showRollout,
  validateRollouts,
} from "./rollouts/index.ts";
export { type Learner, type TrainedPolicy, type TrainRequest, trainPolicy } from "./train/index.ts";
