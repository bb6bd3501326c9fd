export { type ConvertedRollouts, type ConvertRequest, convertRollouts } from "./convert-rollouts.ts";
export { convertTraces, importTraces, type TraceRequest, type TracesRead } from "./convert-traces.ts";
export { type ExportConversationsRequest, exportConversations } from "./export-conversations.ts";
export { type ExportedTable, type ExportTableRequest, exportTable } from "./export-table.ts";
