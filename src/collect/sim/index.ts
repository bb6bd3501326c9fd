export { type Action, TOOLS } from "./actions.ts";
export {
  BEHAVIOURS,
  type Behaviour,
  type BehaviourOptions,
  behaviourRouter,
  chooseWith,
  policyOfRouter,
} from "./behaviour.ts";
export { chatAgent } from "./chat-agent.ts";
export { type DecisionLog, makeDecisionLog, type TargetColumns, targetColumns } from "./decision-log.ts";
export { openEnvironment, type RunTests, type TaskEnvironment, type TestRun } from "./environment.ts";
export { type GeneratedTask, type GenerateOptions, generateTasks } from "./generate.ts";
export { type Grader, proofGrader, sandboxGrader } from "./graders.ts";
export { type ServedUpstream, serveOnLoopback } from "./loopback.ts";
export { type ModelHandler, serveSimulatedModels, simulatedModels } from "./model-server.ts";
export { DEFAULT_MODELS, parseModels, type SimModel, skillOf } from "./models.ts";
export { type Outcome, type OutcomeModel, type ProvedTask, simulateOutcome } from "./outcomes.ts";
export { promptOf, routingContext } from "./prompt.ts";
export { proveTask } from "./prove.ts";
export {
  openRecordedRun,
  type RecordedAnswer,
  type RecordedQuestion,
  type RecordedSet,
  recordedModels,
  recordedRows,
  recordedScorer,
  recordedWorld,
} from "./recorded.ts";
export {
  DEFAULT_WEIGHTS,
  type Grade,
  type PaidCall,
  type RewardWeights,
  type SimFinalState,
  simScorer,
} from "./reward.ts";
export type { ModelRoute, RoutedModel, RoutedRun, RunPlace } from "./routed-run.ts";
export { openSimRun, type SimRunOptions } from "./run.ts";
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
} from "./sim-task.ts";
export { readTasks, writeTasks } from "./task-files.ts";
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
