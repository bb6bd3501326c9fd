export {
  BEHAVIOURS,
  type Behaviour,
  type BehaviourOptions,
  behaviourRouter,
  chooseWith,
  policyOfRouter,
} from "./play/behaviour.ts";
export { chatAgent } from "./play/chat-agent.ts";
export {
  openRecordedRun,
  type RecordedAnswer,
  type RecordedQuestion,
  type RecordedSet,
  recordedModels,
  recordedRows,
  recordedScorer,
  recordedWorld,
} from "./play/recorded.ts";
export type { ModelRoute, RoutedModel, RoutedRun, RunPlace } from "./play/routed-run.ts";
export { openSimRun, type SimRunOptions } from "./play/run.ts";
export { type GeneratedTask, type GenerateOptions, generateTasks } from "./prove/generate.ts";
export { type Grader, proofGrader, sandboxGrader } from "./prove/graders.ts";
export { proveTask } from "./prove/prove.ts";
export { readTasks, writeTasks } from "./prove/task-files.ts";
export { type ServedUpstream, serveOnLoopback } from "./serve/loopback.ts";
export { type ModelHandler, serveSimulatedModels, simulatedModels } from "./serve/model-server.ts";
export { type Action, TOOLS } from "./tasks/actions.ts";
export { promptOf, routingContext } from "./tasks/prompt.ts";
export type {
  Grading,
  Mutant,
  Oracle,
  SimTask,
  SolutionFacts,
  Solutions,
  SourceFiles,
  TaskProof,
  VisibleTask,
} from "./tasks/sim-task.ts";
export {
  type DecisionLog,
  makeDecisionLog,
  type TargetColumns,
  targetColumns,
} from "./world/decision-log.ts";
export { openEnvironment, type RunTests, type TaskEnvironment, type TestRun } from "./world/environment.ts";
export { DEFAULT_MODELS, parseModels, type SimModel, skillOf } from "./world/models.ts";
export { type Outcome, type OutcomeModel, type ProvedTask, simulateOutcome } from "./world/outcomes.ts";
export {
  DEFAULT_WEIGHTS,
  type Grade,
  type PaidCall,
  type RewardWeights,
  type SimFinalState,
  simScorer,
} from "./world/reward.ts";
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
} from "./world/world.ts";
