export type { ReplayError, ReplayErrorCode } from "./findings.ts";
export { type ValidateOptions, type ValidationReport, validateReplay } from "./validate.ts";
