export {
  type ExclusionReason,
  type LedgerEntry,
  LedgerPage,
  LossLedger,
  type Tally,
} from "./batch/ledger.ts";
export { PolicyRevisionLineage, sealLineage } from "./batch/lineage.ts";
export { Manifest, sealManifest } from "./batch/manifest.ts";
export {
  type AdvantageMethod,
  BatchGroups,
  type BatchOptions,
  BatchProofs,
  type BatchRow,
  BatchShard,
  requireLogprobKind,
  type Selection,
  TrainerBatch,
} from "./batch/trainer-batch.ts";
export type { ColumnRef, Reference } from "./codec/fields.ts";
export {
  decodeWire,
  encodeWire,
  openRecord,
  type RecordOf,
  type RecordType,
  type Sealed,
  seal,
} from "./codec/record.ts";
export { isRefusal, REFUSALS, type RefusalCode } from "./codec/refusal.ts";
export { jsonSchemaOf } from "./json-schema.ts";
export { BanditIncrement } from "./policy/bandit-increment.ts";
export { FloorPromise } from "./policy/floor-promise.ts";
export { GateVerdict } from "./policy/gate-verdict.ts";
export {
  advanceRevision,
  type CheckpointRef,
  PolicyRevision,
  type RevisionKey,
  revisionDrift,
} from "./policy/policy-revision.ts";
export {
  assemblePsionicBatch,
  checkPsionicArtifact,
  checkPsionicBatch,
  fromPsionicArtifact,
  fromPsionicRevision,
  makePsionicArtifact,
  type PsionicArtifact,
  type PsionicBatch,
  type PsionicRevision,
  parsePsionicArtifact,
  parsePsionicBatch,
  parsePsionicRevision,
  toPsionicArtifact,
  toPsionicRevision,
  writePsionicJson,
} from "./psionic/index.ts";
export { RECORD_TYPES, recordType } from "./records.ts";
export { Assignment, checkBinding, sampleSeed } from "./rollout/assignment.ts";
export { Call, digestCallLog, MEDIA_KIND, MESSAGE_KIND, sealMessage } from "./rollout/call.ts";
export { type Ending, type FailureOwner, outsideBaseline } from "./rollout/ending.ts";
export { Feedback } from "./rollout/feedback.ts";
export { commitTo, type Proof } from "./rollout/proof.ts";
export {
  checkProofs,
  type Delivery,
  RolloutContent,
  RolloutEnvelope,
  rolloutIdFor,
} from "./rollout/rollout.ts";
export {
  parseRolloutDraft,
  type RecordedRollout,
  RolloutDraft,
  type SealedBlob,
  type SealedRollout,
  sealRecorded,
  sealRollout,
} from "./rollout/rollout-draft.ts";
export { RolloutEvent } from "./rollout/rollout-event.ts";
export { inlineRollout, type ReadBlob, readColumn, readTokenColumns } from "./rollout/rollout-exchange.ts";
export type {
  Candidate,
  Level,
  LogprobKind,
  Step,
  StepStream,
  Stream,
  TokenColumns,
  TokenStream,
} from "./rollout/stream.ts";
export { type EnvironmentKey, EnvironmentPackage } from "./task/environment.ts";
export { Task } from "./task/task.ts";
export {
  Attestation,
  checkAttestation,
  newKeyPem,
  type PublicKey,
  type Signer,
  signerFromPem,
  signersOf,
} from "./trust/attestation.ts";
export { Receipt, type ReceiptOutcome } from "./trust/receipt.ts";
export { type ErasedBlob, Tombstone } from "./trust/tombstone.ts";
export { type Disposition, Release, Verdict } from "./trust/verdict.ts";
