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
export {
  type BatchDetails,
  compareBatches,
  type ExportedBatch,
  exportBatch,
  listBatches,
  readBatch,
  showBatch,
} from "./batches/batches.ts";
export { type CutRequest, cutBatch } from "./batches/cut-batch.ts";
export {
  extendReplay,
  type NewReplayRequest,
  type ReplayRequest,
  type ReplayWritten,
  writeReplay,
} from "./batches/write-replay.ts";
export type { AgentChoice } from "./collect/agent.ts";
export { type GatewayRequest, type OpenGateway, openGateway } from "./collect/gateway.ts";
export { type Identity, identityOf } from "./collect/identity.ts";
export { type LaunchRequest, launch } from "./collect/launch.ts";
export type { Tasks } from "./collect/tasks.ts";
export { type RunningWorker, startWorker, type WorkDone, type WorkerRequest } from "./collect/worker.ts";
export { type AdmittedDecisions, type DecisionRequest, decisionRows } from "./decisions/decision-rows.ts";
export type { DecisionSource } from "./decisions/source.ts";
export {
  type ImportInput,
  type ImportReport,
  type ImportRequest,
  importRollouts,
} from "./import/import-rollouts.ts";
export { type EvaluateRequest, evaluateCheckpoint, type PolicyEvaluation } from "./judge/evaluate.ts";
export { type GateRequest, type GateResult, gateCheckpoints } from "./judge/gate.ts";
export { collectGarbage, type GarbageReport } from "./maintain/collect-garbage.ts";
export { type Verified, type VerifyRequest, verifyBook, verifyNamed } from "./maintain/verify.ts";
export { initBook } from "./open/init-book.ts";
export {
  type BookOnDisk,
  bookOver,
  type OpenBook,
  type OpenBookOptions,
  openBook,
} from "./open/open-book.ts";
export { rebuildCatalog } from "./open/rebuild-catalog.ts";
export type { Judged } from "./rollouts/admit.ts";
export { admitRollouts, releaseRollout, validateRollouts } from "./rollouts/admit-rollouts.ts";
export {
  type AdmittedRequest,
  type AdmittedRollouts,
  admittedRollouts,
  type FreshnessChoice,
  type RolloutFilter,
} from "./rollouts/admitted-rollouts.ts";
export { type EraseRequest, eraseRollouts } from "./rollouts/erase-rollouts.ts";
export { addFeedback, type FeedbackAdded, type FeedbackRequest, sendFeedback } from "./rollouts/feedback.ts";
export {
  exportRollout,
  listRevisions,
  listRollouts,
  type RolloutDetails,
  type RolloutQuery,
  type RolloutRow,
  showRollout,
} from "./rollouts/rollouts.ts";
export type { Learner } from "./train/learners.ts";
export { type TrainedPolicy, type TrainRequest, trainPolicy } from "./train/train.ts";
