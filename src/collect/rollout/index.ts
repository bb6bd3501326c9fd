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
} from "./agent.ts";
export { type ClaimState, claimState } from "./claim-checks.ts";
export { type Execution, type ExecutorOptions, executeRollout, type RolloutJob } from "./executor.ts";
export { cutBy, failedBy } from "./failure.ts";
export type { RolloutFuture } from "./futures.ts";
export type { GatewayPlace } from "./gateway-book.ts";
export { gatewayRecorder } from "./gateway-recorder.ts";
export { type Launch, type LaunchOptions, launch } from "./launcher.ts";
export { loadAgent } from "./load-agent.ts";
export { type LaunchSettings, launchId, type Overrides } from "./plan.ts";
export { programAgent, serverAgent } from "./program.ts";
export type { Progress } from "./progress.ts";
export {
  bookRecorder,
  type Closing,
  type Opening,
  type Recorded,
  type Recorder,
  type Recording,
} from "./recorder.ts";
export { type Rescored, rescore } from "./rescore.ts";
export type { DeadResult, RolloutResult, SealedResult } from "./result.ts";
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
} from "./reward.ts";
export type { RolloutConfig } from "./rollout-config.ts";
export { ATTEMPTS, type Attempts } from "./run-claim.ts";
export { openSealedIndex, type SealedIndex } from "./sealed-index.ts";
export { INLINE_LIMIT_BYTES, type Upload } from "./upload.ts";
export { claimId, laneFor, workItems } from "./work-item.ts";
export { startWorker, type Worker, type WorkerOptions } from "./worker.ts";
export {
  type ClaimRequest,
  type DeskOptions,
  makeDesk,
  type WorkerDesk,
} from "./worker-protocol.ts";
export { makeRegistration, type Registration } from "./worker-registration.ts";
