export * from "./decision-row.ts";
export * from "./default-features.ts";
export * from "./outcomes.ts";
export * from "./returns.ts";
export * from "./seen-units.ts";
export * from "./sparse-rows.ts";
export * from "./whole-chains.ts";
export * from "./word-scale.ts";
