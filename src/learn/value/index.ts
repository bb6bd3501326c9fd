export { LEAST_TASKS } from "./choose-learners.ts";
export { type CrossFitted, crossFitLinear } from "./cross-fit.ts";
export * from "./train-csc.ts";
export { trainValue, type ValueReport } from "./train-value.ts";
export type { ValueKind } from "./try-families.ts";
