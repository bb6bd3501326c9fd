export * from "./ledger.ts";
export * from "./lineage.ts";
export * from "./manifest.ts";
export * from "./replay-manifest.ts";
export * from "./trainer-batch.ts";
