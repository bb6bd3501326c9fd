export { type DecisionLog, makeDecisionLog, type TargetColumns, targetColumns } from "./decision-log.ts";
export { openEnvironment, type RunTests, type TaskEnvironment, type TestRun } from "./environment.ts";
export { DEFAULT_MODELS, digestModels, mostCalls, parseModels, type SimModel, skillOf } from "./models.ts";
export { type Outcome, type OutcomeModel, type ProvedTask, simulateOutcome } from "./outcomes.ts";
export {
  DEFAULT_WEIGHTS,
  type Grade,
  type PaidCall,
  type RewardWeights,
  type SimFinalState,
  simScorer,
} from "./reward.ts";
export { replyTo, tokensOfText } from "./simulated-model.ts";
export {
  bestChoices,
  type FamilyValues,
  type KnownValues,
  type KnownWorld,
  knownValues,
  makeWorld,
  type PolicyOf,
  policyValue,
  type SimWorld,
  valuesByFamily,
} from "./world.ts";
