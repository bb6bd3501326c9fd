export * from "./append-log.ts";
export * from "./log-reader.ts";
