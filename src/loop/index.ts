export { type LoopConfig, parseLoopConfig } from "./config.ts";
export { stopRun } from "./control.ts";
export {
  begunDemoFolder,
  type DemoSize,
  FULL_SIZE,
  newDemoFolder,
  REPORT_FILE,
  runDemo,
  writeDemo,
} from "./demo/index.ts";
export { runLoop } from "./run-loop.ts";
export { loopStatus, statusOf, windowStatus } from "./status.ts";
export { runTour } from "./tour/index.ts";
