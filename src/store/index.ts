export type { Blob, BlobStore, Finding, FindingCode, Location, ScanItem } from "./blob-store.ts";
export { type Book, type BookOptions, openBook } from "./book.ts";
export {
  type Catalog,
  type CatalogRecord,
  type KindTotal,
  openCatalog,
  type RecordFilter,
} from "./catalog.ts";
export type { SyncReport } from "./catalog-sync.ts";
export { collectGarbage, type GcOptions, type GcReport } from "./gc.ts";
export { memoryStore } from "./memory-store.ts";
export type { Recovery } from "./recover.ts";
export {
  isBusy,
  isCorrupt,
  openSqlite,
  type Sqlite,
  type SqlRow,
  type SqlValue,
  type Statement,
} from "./sqlite.ts";
