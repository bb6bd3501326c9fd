export { type CrossFitted, crossFitLinear } from "./cross-fit.ts";
export * from "./train-csc.ts";
export { trainValue, type ValueKind, type ValueReport } from "./train-value.ts";
