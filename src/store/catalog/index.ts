export {
  type Catalog,
  type CatalogRecord,
  type KindTotal,
  openCatalog,
  type RecordFilter,
  scrubCatalog,
} from "./catalog.ts";
export type { SyncReport } from "./catalog-sync.ts";
export { digestsOfKind } from "./digests-of-kind.ts";
export {
  describeRecord,
  digestsInUnknown,
  isRecordKind,
  isRootKind,
  isUnknownKind,
  keptBy,
  referencesOf,
} from "./record-facts.ts";
