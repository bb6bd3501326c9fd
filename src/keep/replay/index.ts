export type { ReplayManifest, ReplaySegment, ReplayWriter } from "../../contract/batch/replay-manifest.ts";
export { type DenseActor, type DenseSupervision, type DenseView, readDense } from "./read/dense-reader.ts";
export {
  type ActorInputs,
  actorInputs,
  type Minibatch,
  type MinibatchOptions,
  minibatches,
  type Supervision,
  statesOf,
  supervision,
} from "./read/minibatches.ts";
export { type Block, type OpenReplayOptions, openReplay, ReplayStore } from "./read/replay-store.ts";
export {
  type Difference,
  findDifferences,
  findSplitLeaks,
  HOMOGENEOUS_FIELDS,
  requireDisjointSplits,
  requireHomogeneous,
  type SplitLeak,
  type StoreField,
} from "./read/store-checks.ts";
export { DEFAULT_RETURNS, type ReturnSemantics, type Returns } from "./tables/return-semantics.ts";
export {
  type ColumnName,
  type ColumnSpec,
  type ColumnsOf,
  SCHEMA_ID,
  SCHEMA_VERSION,
  TABLES,
  type TableName,
  type TableSpec,
} from "./tables/schema.ts";
export type { ReplayError, ReplayErrorCode } from "./validate/findings.ts";
export { type ValidateOptions, type ValidationReport, validateReplay } from "./validate/validate.ts";
export { type CompactOptions, compactReplay } from "./write/compact.ts";
export type { LateFeedback } from "./write/late-labels.ts";
export { collectOrphans, isReplayStore, listOrphans } from "./write/orphans.ts";
export type { Layout } from "./write/table-writer.ts";
export { appendReplay, type WriteOptions, type WriteResult, writeReplay } from "./write/write.ts";
export type { AppendOptions, SegmentLimits, WriteProgress } from "./write/write-session.ts";
