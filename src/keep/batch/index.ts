export { type AssembleRequest, assembleBatch, reassemble } from "./assemble.ts";
export type { StepShardColumns, TokenShardColumns } from "./batch-shards.ts";
export { type BatchDifference, diffBatches } from "./diff.ts";
export {
  NO_PROPENSITY_REMEDY,
  RECORD_TOKENS,
  UNLABELLED_REMEDY,
  verdictRemedies,
} from "./exclusion-remedy.ts";
export {
  type BatchSource,
  type BatchStep,
  type ReadableBatch,
  readBatch,
  type StepBatchRow,
  type TokenBatchRow,
} from "./read-batch.ts";
