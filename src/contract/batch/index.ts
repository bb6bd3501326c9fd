export {
  type DriftBudgets,
  type ExclusionReason,
  type LedgerEntry,
  LedgerPage,
  LossLedger,
  TALLIED,
  type Tally,
} from "./ledger.ts";
export { PolicyRevisionLineage, sealLineage } from "./lineage.ts";
export { Manifest, sealManifest } from "./manifest.ts";
export { ReplayManifest, type ReplaySegment, type ReplayWriter } from "./replay-manifest.ts";
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
