export { Assignment, checkBinding, sampleSeed } from "./assignment.ts";
export {
  Attestation,
  checkAttestation,
  newKeyPem,
  type PublicKey,
  type Signer,
  signerFromPem,
  signersOf,
} from "./attestation.ts";
export { BanditIncrement } from "./bandit-increment.ts";
export { Call, digestCallLog, MEDIA_KIND, MESSAGE_KIND, sealMessage } from "./call.ts";
export { type Ending, type FailureOwner, outsideBaseline } from "./ending.ts";
export { type EnvironmentKey, EnvironmentPackage } from "./environment.ts";
export { Feedback } from "./feedback.ts";
export type { ColumnRef, Reference } from "./fields.ts";
export { FloorPromise } from "./floor-promise.ts";
export { GateVerdict } from "./gate-verdict.ts";
export { jsonSchemaOf } from "./json-schema.ts";
export { type ExclusionReason, type LedgerEntry, LedgerPage, LossLedger, type Tally } from "./ledger.ts";
export { PolicyRevisionLineage, sealLineage } from "./lineage.ts";
export { Manifest, sealManifest } from "./manifest.ts";
export {
  advanceRevision,
  type CheckpointRef,
  PolicyRevision,
  type RevisionKey,
  revisionDrift,
} from "./policy-revision.ts";
export { commitTo, type Proof } from "./proof.ts";
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
export { Receipt, type ReceiptOutcome } from "./receipt.ts";
export {
  decodeWire,
  encodeWire,
  openRecord,
  type RecordOf,
  type RecordType,
  type Sealed,
  seal,
} from "./record.ts";
export { RECORD_TYPES, recordType } from "./records.ts";
export { isRefusal, REFUSALS, type RefusalCode } from "./refusal.ts";
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
export { RolloutEvent } from "./rollout-event.ts";
export { inlineRollout, type ReadBlob, readColumn, readTokenColumns } from "./rollout-exchange.ts";
export type {
  Candidate,
  Level,
  LogprobKind,
  Step,
  StepStream,
  Stream,
  TokenColumns,
  TokenStream,
} from "./stream.ts";
export { Task } from "./task.ts";
export { type ErasedBlob, Tombstone } from "./tombstone.ts";
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
} from "./trainer-batch.ts";
export { type Disposition, Release, Verdict } from "./verdict.ts";
