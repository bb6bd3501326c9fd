export { type LoopConfig, parseLoopConfig } from "./config.ts";
export { stopRun } from "./control.ts";
export { runDemo } from "./demo/index.ts";
export { runLoop } from "./run-loop.ts";
export { loopStatus, statusOf, windowStatus } from "./status.ts";
