export {
  type Chunk,
  digestStoredArray,
  type OpenOptions,
  openArray,
  type RowRange,
  ZarrArray,
} from "./array-reader.ts";
export { type ArrayOptions, ArrayWriter, createArray, type WrittenArray } from "./array-writer.ts";
export type { BytesCodec } from "./codecs/codecs.ts";
export type { DataType, FillValue, Values, ValuesOf } from "./codecs/data-types.ts";
export {
  ARRAY_TAG,
  type ArrayDigests,
  CHUNK_TAG,
  digestArray,
  digestChunk,
  METADATA_TAG,
} from "./digests.ts";
export { FileStore, type FileStoreOptions } from "./file-store.ts";
export { consolidate, consolidatedArray, openGroup, readTree, writeGroup } from "./group.ts";
export {
  type ArrayMetadata,
  type Attributes,
  formatNode,
  type GroupMetadata,
  type NodeMetadata,
  parseNode,
} from "./metadata.ts";
export type { MaybePromise, ReadableStore, Store } from "./store.ts";
