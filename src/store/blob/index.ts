export * from "./blob-index.ts";
export * from "./blob-store.ts";
export * from "./memory-store.ts";
export * from "./read-record.ts";
