export {
  type Blob,
  type BlobStore,
  type Finding,
  type Location,
  memoryStore,
  type ReadRecord,
  readRecord,
  type ScanItem,
} from "./blob/index.ts";
export { type Book, type BookOptions, openBook } from "./book.ts";
export {
  type Catalog,
  type CatalogRecord,
  type CatalogRun,
  describeRecord,
  isSignedKind,
  openCatalog,
  type RecordFilter,
  referencesOf,
  scrubCatalog,
} from "./catalog/index.ts";
export {
  bootId,
  GroupCommit,
  isMissing,
  type Lock,
  linkOrCopy,
  makeDirectory,
  OWNER_ONLY,
  openSqlite,
  readText,
  type Sqlite,
  type Statement,
  syncDirectory,
  tryLock,
  unlinkIfThere,
  type Waiter,
  whenFree,
  withLock,
  writeAtomically,
  writeFully,
} from "./disk/index.ts";
export { collectGarbage, eraseBlobs, type GcReport, planErasure } from "./gc/index.ts";
export { readLastHead } from "./head/index.ts";
export { AppendLog, type LogPlace, LogReader } from "./log/index.ts";
export {
  type Bucket,
  bucketEnvironment,
  bucketUrlOf,
  checkOut,
  isBucketUrl,
  openS3Bucket,
  requireConditions,
} from "./remote/index.ts";
export {
  attest,
  attestedTogether,
  makeGroupSealer,
  makeSealer,
  type Sealable,
  type Sealer,
  SUBJECTS_PER_SIGNATURE,
  signedAmong,
  subjectsOf,
} from "./sealer.ts";
