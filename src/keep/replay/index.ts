export type { ReplayManifest, ReplaySegment, ReplayWriter } from "../../contract/replay-manifest.ts";
export { type CompactOptions, compactReplay } from "./compact.ts";
export { type DenseActor, type DenseSupervision, type DenseView, readDense } from "./dense-reader.ts";
export type { LateFeedback } from "./late-labels.ts";
export {
  type ActorInputs,
  actorInputs,
  type Minibatch,
  type MinibatchOptions,
  minibatches,
  type Supervision,
  statesOf,
  supervision,
} from "./minibatches.ts";
export { collectOrphans, isReplayStore, listOrphans } from "./orphans.ts";
export { type Block, type OpenReplayOptions, openReplay, ReplayStore } from "./replay-store.ts";
export { DEFAULT_RETURNS, type ReturnSemantics, type Returns } from "./return-semantics.ts";
export {
  type ColumnName,
  type ColumnSpec,
  type ColumnsOf,
  SCHEMA_ID,
  SCHEMA_VERSION,
  TABLES,
  type TableName,
  type TableSpec,
} from "./schema.ts";
export {
  type Difference,
  findDifferences,
  findSplitLeaks,
  HOMOGENEOUS_FIELDS,
  requireDisjointSplits,
  requireHomogeneous,
  type SplitLeak,
  type StoreField,
} from "./store-checks.ts";
export type { Layout } from "./table-writer.ts";
export type { ReplayError, ReplayErrorCode } from "./validate/findings.ts";
export { type ValidateOptions, type ValidationReport, validateReplay } from "./validate/validate.ts";
export { appendReplay, type WriteOptions, type WriteResult, writeReplay } from "./write.ts";
export type { AppendOptions, SegmentLimits, WriteProgress } from "./write-session.ts";
