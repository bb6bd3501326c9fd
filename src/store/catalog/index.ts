export * from "./catalog.ts";
export * from "./catalog-sync.ts";
export * from "./record-facts.ts";
