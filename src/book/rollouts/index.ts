export {
  admissionFor,
  admitRollouts,
  judgeFreshness,
  releaseRollout,
  validateRollouts,
} from "./admit-rollouts.ts";
export {
  type AdmittedRequest,
  type AdmittedRollouts,
  admittedRollouts,
  chooseArtifacts,
  collectManifest,
  defaultFreshness,
  type FreshnessChoice,
  familiesAt,
  type RolloutFilter,
  requireAdmitted,
  requireFeedback,
  requireTrustedManifest,
} from "./admitted-rollouts.ts";
export { addFeedback, sendFeedback } from "./feedback.ts";
export type { FittingTarget } from "./fitting-targets.ts";
export { nothingAt, RECORD_ROLLOUTS, requireExperiment, requireRollouts } from "./no-rollouts.ts";
export { readRevision } from "./read-revision.ts";
export type { RolloutQuery, RolloutRow } from "./rollout-row.ts";
export {
  facetsOf,
  type RolloutSummary,
  type RolloutWindow,
  selectRows,
  summaryOf,
  windowOf,
} from "./rollout-window.ts";
export {
  exportRollout,
  type ListedRollout,
  lastRun,
  listRevisions,
  listRollouts,
  type RolloutDetails,
  showRollout,
  withFeedback,
} from "./rollouts.ts";
export { seenBy } from "./seen-by.ts";
export { taskFailures } from "./task-failures.ts";
export {
  isRewardedLater,
  readTranscript,
  type Transcript,
  type TranscriptCall,
  type TranscriptChoice,
  type TranscriptTurn,
  transcriptOf,
} from "./transcript.ts";
export { type AdmissionResult, validatorKey } from "./verdict-writer.ts";
