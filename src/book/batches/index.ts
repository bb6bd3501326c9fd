export {
  type BatchDetails,
  compareBatches,
  exportBatch,
  listBatches,
  readBatch,
  showBatch,
} from "./batches.ts";
export { type CutRequest, cutBatch, cutFrom } from "./cut-batch.ts";
export { type BatchEvidence, readEvidence } from "./read-evidence.ts";
