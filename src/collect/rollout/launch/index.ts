export type { EarlierRuns } from "./earlier-launch.ts";
export * from "./futures.ts";
export * from "./launcher.ts";
export * from "./progress.ts";
export * from "./rescore.ts";
export * from "./result.ts";
