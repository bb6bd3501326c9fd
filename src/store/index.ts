export type { Blob, BlobStore, Finding, FindingCode, Location, ScanItem } from "./blob/blob-store.ts";
export { memoryStore } from "./blob/memory-store.ts";
export { type Book, type BookOptions, openBook } from "./book.ts";
export {
  type Catalog,
  type CatalogRecord,
  type KindTotal,
  openCatalog,
  type RecordFilter,
} from "./catalog/catalog.ts";
export type { SyncReport } from "./catalog/catalog-sync.ts";
export {
  isBusy,
  isCorrupt,
  openSqlite,
  type Sqlite,
  type SqlRow,
  type SqlValue,
  type Statement,
} from "./disk/sqlite.ts";
export { collectGarbage, type GcOptions, type GcReport } from "./gc/gc.ts";
export type { Recovery } from "./pack/recover.ts";
