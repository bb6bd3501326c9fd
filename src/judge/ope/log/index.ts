export * from "./chain.ts";
export * from "./logged-decisions.ts";
