export { admissionFor, admitRollouts, releaseRollout, validateRollouts } from "./admit-rollouts.ts";
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
export { addFeedback, type FeedbackAdded, type FeedbackRequest, sendFeedback } from "./feedback.ts";
export { readRevision } from "./read-revision.ts";
export {
  exportRollout,
  listRevisions,
  listRollouts,
  type RolloutDetails,
  type RolloutQuery,
  type RolloutRow,
  showRollout,
} from "./rollouts.ts";
export { seenBy } from "./seen-by.ts";
export type { AdmissionResult } from "./verdict-writer.ts";
