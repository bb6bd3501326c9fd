export { BLAMED, type Execution, type ExecutorOptions, executeRollout, type RolloutJob } from "./executor.ts";
export type { GatewayPlace } from "./gateway-book.ts";
export { gatewayRecorder } from "./gateway-recorder.ts";
export {
  agentRevision,
  bookRecorder,
  type Closing,
  type Opening,
  type Recorded,
  type Recorder,
  type Recording,
} from "./recorder.ts";
