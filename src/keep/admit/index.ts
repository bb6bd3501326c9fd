export {
  type AdmissionOptions,
  FRESHNESS_VALIDATOR,
  freshnessReceipt,
  freshnessVerdict,
  makeAdmission,
  releaseQuarantined,
} from "./admission.ts";
export type { Reexecution } from "./checks.ts";
export {
  type Budget,
  CLOCK_SKEW_MS,
  FRESHNESS_PROFILES,
  type Freshness,
  type FreshnessBudgets,
  type FreshnessOutcome,
  type FreshnessRequest,
  judgeFreshness,
} from "./freshness.ts";
export {
  type Artifact,
  DUPLICATE_WEIGHT_BPS,
  isSampled,
  type ValidateOptions,
  validateBundle,
} from "./validate.ts";
