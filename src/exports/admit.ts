export {
  type AdmissionOptions,
  type Artifact,
  checkFreshness,
  FRESHNESS_PROFILES,
  type FreshnessBudgets,
  type FreshnessOutcome,
  type FreshnessRequest,
  makeAdmission,
  type ValidateOptions,
  validateBundle,
} from "../keep/admit/index.ts";
