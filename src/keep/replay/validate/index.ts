export * from "./findings.ts";
export * from "./validate.ts";
