export { type AssembleRequest, assembleBatch, reassemble } from "./assemble.ts";
export type { StepShard, StepShardColumns, TokenShard, TokenShardColumns } from "./batch-shards.ts";
export { type BatchDifference, diffBatches } from "./diff.ts";
export {
  type BatchCandidate,
  type BatchSource,
  type BatchStep,
  type ReadableBatch,
  readBatch,
  type StepBatch,
  type StepBatchRow,
  type TokenBatch,
  type TokenBatchRow,
} from "./read-batch.ts";
export type { WriteBlob } from "./shard-writer.ts";
