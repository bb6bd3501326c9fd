export { Assignment, checkBinding, sampleSeed } from "./assignment.ts";
export { Call, digestCallLog, MEDIA_KIND, MESSAGE_KIND, openMessage, sealMessage } from "./call.ts";
export { type Ending, ending, type FailureOwner, failureOwner, outsideBaseline } from "./ending.ts";
export { Feedback } from "./feedback.ts";
export { FINAL_STATE_KIND, sealFinalState } from "./final-state.ts";
export { commitTo, type Proof, proof } from "./proof.ts";
export { checkProofs, type Delivery, RolloutContent, RolloutEnvelope, rolloutIdFor } from "./rollout.ts";
export {
  parseRolloutDraft,
  type RecordedRollout,
  RolloutDraft,
  type SealedBlob,
  type SealedRollout,
  sealRecorded,
  sealRollout,
} from "./rollout-draft.ts";
export { RolloutEvent, rolloutRun } from "./rollout-event.ts";
export { inlineRollout, type ReadBlob, readColumn, readTokenColumns } from "./rollout-exchange.ts";
export {
  type Candidate,
  COLUMN_NAMES,
  checkCoverage,
  checkTokenColumns,
  type Level,
  LOGPROB_TOLERANCE,
  type LogprobKind,
  logprobKind,
  parentOf,
  type Step,
  type StepStream,
  type Stream,
  sampleCount,
  TOKEN_COLUMNS,
  type TokenColumns,
  type TokenStream,
} from "./stream.ts";
