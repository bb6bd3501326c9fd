export type { AdmitOptions, AdmitRequest, Admitted, AdmittedStream } from "./admitted.ts";
export { beyondTarget, explainFreshness } from "./explain-freshness.ts";
export {
  type Budget,
  checkFreshness,
  driftFrom,
  FRESHNESS_PROFILES,
  type FreshnessBudgets,
  type FreshnessOutcome,
  type FreshnessRequest,
  measureDrift,
  sourcesOf,
} from "./freshness.ts";
export {
  type AdmissionOptions,
  freshnessReceipt,
  freshnessVerdict,
  makeAdmission,
  releaseQuarantined,
} from "./freshness-verdict.ts";
export { taskKey } from "./gates.ts";
export { countedFeedback, type LateReward, labelSteps, labelTokens } from "./labels.ts";
export {
  contentReader,
  readSealed,
  recordReader,
  type SourceReaders,
  sourceReaders,
} from "./read-sources.ts";
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
export { type Artifact, isProven, type ValidateOptions, validateBundle } from "./validate.ts";
