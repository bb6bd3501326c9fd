export * from "./attestation.ts";
export * from "./folded-heads.ts";
export * from "./head.ts";
export * from "./keys.ts";
export * from "./receipt.ts";
export * from "./signer.ts";
export * from "./tombstone.ts";
export * from "./verdict.ts";
