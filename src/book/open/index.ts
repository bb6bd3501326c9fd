export { type BookIndex, catalogIndex, type IndexedRecord, type IndexedRun } from "./book-index.ts";
export { CatalogComparison, type CatalogDifference } from "./compare-catalog.ts";
export { initBook } from "./init-book.ts";
export { initExample } from "./init-example.ts";
export {
  createKey,
  ensureKey,
  type Keyring,
  keyringAt,
  keyringOf,
  listTrusted,
  loadSigner,
  ownKeyring,
  parsePublicKey,
  trustedKeys,
  trustKey,
  untrustKey,
} from "./keyring.ts";
export {
  type BookOnDisk,
  bookOver,
  DEFAULT_BOOK,
  headSigner,
  isBook,
  mayWrite,
  type OpenBook,
  type OpenBookOptions,
  openBook,
  requireBook,
  requireWritable,
  useBook,
} from "./open-book.ts";
export { readBlob, readOf } from "./read-blob.ts";
export { rebuildCatalog } from "./rebuild-catalog.ts";
export {
  artifactsOf,
  artifactsWith,
  callIn,
  decisionIn,
  everyArtifact,
  type IndexedArtifact,
  knownRevisions,
  nameOf,
  resolveArtifact,
  resolveBatch,
  resolveBlob,
  resolveCall,
  resolveErasable,
  resolveRecord,
  resolveRevision,
  revisionsIn,
} from "./resolve.ts";
export { requiredKeys, requireTrusted, splitByTrust, type TrustingBook, trustedSet } from "./trust.ts";
export { copyOf, workingCopy } from "./working-copy.ts";
