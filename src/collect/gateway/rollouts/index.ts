export * from "./close-coordinator.ts";
export * from "./lost-calls.ts";
export * from "./named-records.ts";
export * from "./open-rollouts.ts";
export * from "./opening.ts";
export * from "./rebuild-closed-index.ts";
export * from "./recover.ts";
