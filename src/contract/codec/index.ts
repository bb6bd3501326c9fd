export * from "./config-problem.ts";
export * from "./fields.ts";
export * from "./mask-runs.ts";
export * from "./record.ts";
export * from "./refusal.ts";
