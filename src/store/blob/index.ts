export { BlobIndex, type Place } from "./blob-index.ts";
export {
  type Blob,
  type BlobStore,
  checkKind,
  closedError,
  damageError,
  type Finding,
  type FindingCode,
  isKind,
  itemsOf,
  type Location,
  MAX_KIND_BYTES,
  type ScanItem,
} from "./blob-store.ts";
export { memoryStore } from "./memory-store.ts";
export { readRecord } from "./read-record.ts";
