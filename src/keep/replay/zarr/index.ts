export { digestStoredArray, openArray, type ZarrArray } from "./array-reader.ts";
export { type ArrayWriter, createArray, type WrittenArray } from "./array-writer.ts";
export { ChunkSource } from "./chunk-source.ts";
export {
  bytesOver,
  type DataType,
  emptyValues,
  itemBytes,
  type NumericValues,
  type ValuesOf,
} from "./codecs/index.ts";
export { digestArray, digestChunk, METADATA_TAG } from "./digests.ts";
export { FileStore } from "./file-store.ts";
export { consolidate, openGroup, writeGroup } from "./group.ts";
export {
  type ArrayMetadata,
  formatNode,
  type GroupMetadata,
  type NodeMetadata,
  parseNode,
} from "./metadata.ts";
export type { ReadableStore, Store } from "./store.ts";
