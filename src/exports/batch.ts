export {
  type AssembleRequest,
  assembleBatch,
  type BatchDifference,
  type BatchSource,
  diffBatches,
  type ReadableBatch,
  readBatch,
  reassemble,
  type StepBatchRow,
  type TokenBatchRow,
} from "../keep/batch/index.ts";
