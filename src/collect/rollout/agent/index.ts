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
export { cutBy, endingOfError, failedBy, failure, isNamedByThrower, namedEnding } from "./failure.ts";
export { loadAgent } from "./load-agent.ts";
export { type ReadOutput, readOutput, type Score, totalOf } from "./output.ts";
export { programAgent, serverAgent } from "./program.ts";
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
export { type ConfigParts, mergeConfig, type RolloutConfig, refuseKeys } from "./rollout-config.ts";
