/** The door of book/: everything that can be done with a book. Every function takes an open book, or a path. */

export { RollbookError } from "../base/index.ts";
export type { Gateway, GatewayConfig } from "../collect/gateway/index.ts";
export type {
  Launch,
  Payload,
  RolloutContext,
  RolloutFunction,
  RolloutOutput,
  RolloutResult,
} from "../collect/rollout/index.ts";
export { defineRollout } from "../collect/rollout/index.ts";
export type { ReadableBatch } from "../keep/batch/index.ts";
export type { EraseReport } from "../keep/erase/index.ts";
export type { Judged } from "./admit.ts";
export { admitRollouts, releaseRollout, validateRollouts } from "./admit-rollouts.ts";
export {
  type AdmittedRequest,
  type AdmittedRollouts,
  admittedRollouts,
  type FreshnessChoice,
  type RolloutFilter,
} from "./admitted-rollouts.ts";
export {
  type BatchDetails,
  compareBatches,
  type ExportedBatch,
  exportBatch,
  listBatches,
  readBatch,
  showBatch,
} from "./batches.ts";
export type { AgentChoice } from "./collect/agent.ts";
export { type GatewayRequest, type OpenGateway, openGateway } from "./collect/gateway.ts";
export { type Identity, identityOf } from "./collect/identity.ts";
export { type LaunchRequest, launch } from "./collect/launch.ts";
export type { Tasks } from "./collect/tasks.ts";
export { type RunningWorker, startWorker, type WorkDone, type WorkerRequest } from "./collect/worker.ts";
export { collectGarbage, type GarbageReport } from "./collect-garbage.ts";
export { type CutRequest, cutBatch } from "./cut-batch.ts";
export { type AdmittedDecisions, type DecisionRequest, decisionRows } from "./decisions/decision-rows.ts";
export type { DecisionSource } from "./decisions/source.ts";
export { type EraseRequest, eraseRollouts } from "./erase-rollouts.ts";
export { addFeedback, type FeedbackAdded, type FeedbackRequest, sendFeedback } from "./feedback.ts";
export { rebuildCatalog } from "./find/rebuild-catalog.ts";
export {
  exportRollout,
  listRevisions,
  listRollouts,
  type RolloutDetails,
  type RolloutQuery,
  type RolloutRow,
  showRollout,
} from "./find/rollouts.ts";
export {
  type ImportInput,
  type ImportReport,
  type ImportRequest,
  importRollouts,
} from "./import/import-rollouts.ts";
export { initBook } from "./init-book.ts";
export { type EvaluateRequest, evaluateCheckpoint, type PolicyEvaluation } from "./judge/evaluate.ts";
export { type GateRequest, type GateResult, gateCheckpoints } from "./judge/gate.ts";
export {
  type BookOnDisk,
  bookOver,
  type OpenBook,
  type OpenBookOptions,
  openBook,
} from "./open-book.ts";
export type { Learner } from "./train/learners.ts";
export { type TrainedPolicy, type TrainRequest, trainPolicy } from "./train/train.ts";
export { type Verified, type VerifyRequest, verifyBook, verifyNamed } from "./verify.ts";
export {
  extendReplay,
  type NewReplayRequest,
  type ReplayRequest,
  type ReplayWritten,
  writeReplay,
} from "./write-replay.ts";
