export { collectDecisions } from "./collect-decisions.ts";
export {
  type FamilySummary,
  meanReward,
  type ObservedReward,
  sayDistance,
  sayObserved,
  standardErrors,
  summarise,
} from "./family-summary.ts";
export { generateTaskFolder, requireProver } from "./generate-tasks.ts";
export { readModels, readWorld } from "./read-files.ts";
export { ENGINES, type EngineChoice, runOnBook, withGrader } from "./run-on-book.ts";
export { serveRecorded } from "./serve-recorded.ts";
export { type ExactValues, simulate } from "./simulate.ts";
