export {
  type AdmissionOptions,
  FRESHNESS_VALIDATOR,
  freshnessReceipt,
  freshnessVerdict,
  makeAdmission,
  releaseQuarantined,
} from "./admission.ts";
export type { AdmitOptions, AdmitRequest, Admitted, AdmittedStream } from "./admitted.ts";
export type { Reexecution } from "./checks.ts";
export {
  type Budget,
  CLOCK_SKEW_MS,
  checkFreshness,
  FRESHNESS_PROFILES,
  type Freshness,
  type FreshnessBudgets,
  type FreshnessOutcome,
  type FreshnessRequest,
} from "./freshness.ts";
export { type LateReward, labelSteps, labelTokens } from "./labels.ts";
export { contentReader, readRecord, readSealed } from "./read-sources.ts";
export { selectAdmitted } from "./select.ts";
export {
  checkSplit,
  DEFAULT_SPLIT,
  decisionId,
  partOf,
  SPLIT_PARTS,
  SPLIT_UNITS,
  type SplitPart,
  type SplitRule,
  type SplitUnit,
  sessionOf,
  TRAIN_ON_ALL,
  unitOfStream,
} from "./split.ts";
export { streamKey } from "./stream-gates.ts";
export {
  type Artifact,
  DUPLICATE_WEIGHT_BPS,
  isSampled,
  type ValidateOptions,
  validateBundle,
} from "./validate.ts";
