export * from "./train-csc.ts";
export { trainValue, type ValueKind, type ValueOptions, type ValueReport } from "./train-value.ts";
