export * from "./chain.ts";
export * from "./logged-decisions.ts";
export * from "./outcome-range.ts";
