export * from "./attack.ts";
export * from "./catalogue.ts";
export * from "./witness.ts";
