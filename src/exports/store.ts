export {
  type Blob,
  type BlobStore,
  type Book,
  type BookOptions,
  type Catalog,
  collectGarbage,
  memoryStore,
  openBook,
  openCatalog,
  type RecordFilter,
} from "../store/index.ts";
