export * from "./group-ops.ts";
export * from "./record-ops.ts";
export * from "./schema.ts";
export * from "./shape-ops.ts";
