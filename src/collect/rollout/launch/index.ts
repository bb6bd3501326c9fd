export type { RolloutFuture } from "./futures.ts";
export { type Launch, type LaunchOptions, launch } from "./launcher.ts";
export { type Progress, Tally } from "./progress.ts";
export { type Rescored, rescore } from "./rescore.ts";
export type { DeadResult, RolloutResult, SealedResult } from "./result.ts";
