export { type ConvertedRollouts, convertRollouts } from "./convert-rollouts.ts";
export { convertTraces, importTraces } from "./convert-traces.ts";
export { exportConversations } from "./export-conversations.ts";
export { exportTable } from "./export-table.ts";
