export { Dictionary } from "./dictionary.ts";
export { type ChainWindow, chainWindows, runs, type StepWindow, stepWindows } from "./fact-windows.ts";
export { KeyMap, pairKey } from "./key-map.ts";
export {
  commitManifest,
  commitRoot,
  hasManifest,
  LOCK_FILE,
  MANIFEST_FILE,
  ROOT_FILE,
  readManifest,
  removeTemporaries,
  SEGMENTS,
  sealReplayManifest,
  segmentedRoot,
  segmentRoot,
  totalRows,
} from "./manifest.ts";
export { closeSegments, digestFault, type OpenedSegment, openSegments } from "./open-segment.ts";
export { ReasonNames } from "./reason-names.ts";
export { DEFAULT_RETURNS, type ReturnSemantics, type Returns, rootGain } from "./return-semantics.ts";
export {
  arrayPaths,
  type ColumnName,
  type ColumnSpec,
  type ColumnsOf,
  type ColumnValues,
  columnOf,
  columnsOf,
  FACT_TABLES,
  rowShape,
  SCHEMA_ID,
  SCHEMA_VERSION,
  TABLE_NAMES,
  TABLES,
  type TableName,
  type TableSpec,
  tableOf,
} from "./schema.ts";
export { HASHED_LINEAGE, HashedSets } from "./segment-hashes.ts";
export { metadataFault, SegmentReader, WALK_CACHE_BYTES } from "./segment-reader.ts";
