export type { Admission, Admit, Submitted } from "../admission.ts";
export {
  type Agent,
  defineRollout,
  functionAgent,
  type Payload,
  type Reward,
  type RolloutContext,
  type RolloutDefinition,
  type RolloutFunction,
  type RolloutLimits,
  type RolloutOutput,
} from "./agent/agent.ts";
export { cutBy, failedBy } from "./agent/failure.ts";
export { loadAgent } from "./agent/load-agent.ts";
export { programAgent, serverAgent } from "./agent/program.ts";
export {
  compositeReward,
  costTerm,
  latencyTerm,
  type RewardFunction,
  type RewardInput,
  type RewardTerm,
  retriesTerm,
  rewardOf,
  type Scorer,
  terminalFailureTerm,
  timeoutTerm,
  type Usage,
  verificationTerm,
} from "./agent/reward.ts";
export type { RolloutConfig } from "./agent/rollout-config.ts";
export type { RolloutFuture } from "./launch/futures.ts";
export { type Launch, type LaunchOptions, launch } from "./launch/launcher.ts";
export type { Progress } from "./launch/progress.ts";
export { type Rescored, rescore } from "./launch/rescore.ts";
export type { DeadResult, RolloutResult, SealedResult } from "./launch/result.ts";
export { type Execution, type ExecutorOptions, executeRollout, type RolloutJob } from "./record/executor.ts";
export type { GatewayPlace } from "./record/gateway-book.ts";
export { gatewayRecorder } from "./record/gateway-recorder.ts";
export {
  bookRecorder,
  type Closing,
  type Opening,
  type Recorded,
  type Recorder,
  type Recording,
} from "./record/recorder.ts";
export { claimId, laneFor, workItems } from "./work/work-item.ts";
export { type ClaimState, claimState } from "./worker/claim-checks.ts";
export { type LaunchSettings, launchId, type Overrides } from "./worker/plan.ts";
export { ATTEMPTS, type Attempts } from "./worker/run-claim.ts";
export { openSealedIndex, type SealedIndex } from "./worker/sealed-index.ts";
export { INLINE_LIMIT_BYTES, type Upload } from "./worker/upload.ts";
export { startWorker, type Worker, type WorkerOptions } from "./worker/worker.ts";
export {
  type ClaimRequest,
  type DeskOptions,
  makeDesk,
  type WorkerDesk,
} from "./worker/worker-protocol.ts";
export { makeRegistration, type Registration } from "./worker/worker-registration.ts";
