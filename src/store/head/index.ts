export * from "./fold-heads.ts";
export * from "./head-check.ts";
export * from "./head-state.ts";
export * from "./head-writer.ts";
