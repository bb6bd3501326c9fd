export * from "./claim-checks.ts";
export * from "./plan.ts";
export * from "./run-claim.ts";
export * from "./sealed-index.ts";
export * from "./upload.ts";
export * from "./worker.ts";
export * from "./worker-protocol.ts";
export * from "./worker-registration.ts";
