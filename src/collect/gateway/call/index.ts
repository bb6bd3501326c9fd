export * from "./call-events.ts";
export * from "./end-of-tick.ts";
export * from "./journaled-bytes.ts";
export * from "./model-call.ts";
export * from "./outgoing.ts";
export * from "./pass-through.ts";
export * from "./prices.ts";
export * from "./restore-estimates.ts";
