export { requestSeed } from "./ask-model.ts";
export {
  BEHAVIOURS,
  type Behaviour,
  type BehaviourOptions,
  behaviourRouter,
  chooseWith,
  policyOfRouter,
} from "./behaviour.ts";
export { chatAgent } from "./chat-agent.ts";
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
export type { ModelRoute, RoutedModel, RoutedRun, RunPlace } from "./routed-run.ts";
export { openSimRun, type SimRunOptions } from "./run.ts";
