export * from "./bandit-increment.ts";
export * from "./floor-promise.ts";
export * from "./gate-verdict.ts";
export * from "./named-router.ts";
export * from "./policy-revision.ts";
export * from "./rollback.ts";
export * from "./split-rule.ts";
