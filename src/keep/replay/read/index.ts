export * from "./dense-reader.ts";
export * from "./minibatches.ts";
export * from "./replay-store.ts";
export * from "./store-checks.ts";
