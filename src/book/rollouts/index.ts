export { type AdmissionResult, admissionFor, admitInBook } from "./admit.ts";
export { admitRollouts, releaseRollout, validateRollouts } from "./admit-rollouts.ts";
export {
  type AdmittedRequest,
  type AdmittedRollouts,
  admittedRollouts,
  chooseArtifacts,
  collectManifest,
  defaultFreshness,
  type FreshnessChoice,
  familiesAt,
  kindOf,
  type RolloutFilter,
  requireAdmitted,
  requireFeedback,
} from "./admitted-rollouts.ts";
export { addFeedback, type FeedbackAdded, type FeedbackRequest, sendFeedback } from "./feedback.ts";
export {
  exportRollout,
  listRevisions,
  listRollouts,
  type RolloutDetails,
  type RolloutQuery,
  type RolloutRow,
  showRollout,
} from "./rollouts.ts";
