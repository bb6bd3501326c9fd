export * from "./contenders.ts";
export * from "./cost-quality.ts";
export * from "./evaluate.ts";
export * from "./evaluate-chains.ts";
export * from "./evaluation-data.ts";
export { apgr, frontier } from "./frontier.ts";
export * from "./judged-row.ts";
export * from "./liveness.ts";
