export * from "./bugfix.ts";
export * from "./implement.ts";
export * from "./op.ts";
export * from "./pipeline.ts";
