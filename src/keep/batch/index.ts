export { type AssembleRequest, assembleBatch, reassemble } from "./assemble.ts";
export { type BatchDifference, diffBatches } from "./diff.ts";
export type { WriteBlob } from "./shard-writer.ts";
