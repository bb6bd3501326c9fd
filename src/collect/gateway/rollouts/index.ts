export * from "./close-coordinator.ts";
export * from "./closed-index.ts";
export * from "./lost-calls.ts";
export * from "./named-records.ts";
export * from "./opening.ts";
export * from "./recover.ts";
export * from "./rollout-states.ts";
export * from "./rollouts.ts";
