export { type DecisionRequest, decisionRows, everyDecision, rowsOfBatch } from "./decision-rows.ts";
export { requireSelected } from "./filters.ts";
export { noteImport, requireFirstImport } from "./import-log.ts";
export { logWarnings } from "./log-warnings.ts";
export { type LogPreview, previewLog } from "./preview-log.ts";
export { formatOf, LOG_FORMATS, type LogFormat, type LogOptions, readLog, wrongUsage } from "./read-log.ts";
export { sealDecisions } from "./seal-rows.ts";
export {
  type DatasetSource,
  type DecisionSource,
  datasetOf,
  isDataset,
  loadDecisions,
  loadPart,
  requireDecisions,
  requireSome,
  usableChains,
  viewDecisions,
  withStore,
} from "./source.ts";
export { emptyPart, requirePart } from "./split-rows.ts";
export { writeDataset, writeJsonLines } from "./write-dataset.ts";
