export * from "./catalog.ts";
export * from "./catalog-sync.ts";
export * from "./record-facts.ts";
export * from "./scrub-catalog.ts";
