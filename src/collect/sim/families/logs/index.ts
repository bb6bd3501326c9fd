export { FORENSIC_OPS, timeWindow } from "./forensic-ops.ts";
export { drawLog, FORMAT_COUNT, LOG_SCHEMA, parseOp } from "./log-format.ts";
