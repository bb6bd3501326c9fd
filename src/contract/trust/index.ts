export * from "./attestation.ts";
export * from "./receipt.ts";
export * from "./tombstone.ts";
export * from "./verdict.ts";
