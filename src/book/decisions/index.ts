export { conversationsOf, readCalls } from "./calls-of.ts";
export { admittedConversations, everyAdmitted } from "./conversations.ts";
export {
  type AdmittedDecisions,
  type DecisionRequest,
  decisionRows,
  everyDecision,
  rowsOfBatch,
} from "./decision-rows.ts";
export { LOG_FORMATS, type LogOptions, readLog, wrongUsage } from "./read-log.ts";
export { sealDecisions } from "./seal-rows.ts";
export {
  type DatasetSource,
  type DecisionSource,
  datasetOf,
  isDataset,
  loadDecisions,
  requireDecisions,
  viewDecisions,
} from "./source.ts";
export { emptyPart, requirePart } from "./split-rows.ts";
export { writeDataset, writeJsonLines } from "./write-dataset.ts";
