export * from "./bandit-increment.ts";
export * from "./bandit-statistics.ts";
export * from "./update-bandit.ts";
