export * from "./forensic-ops.ts";
export * from "./log-format.ts";
