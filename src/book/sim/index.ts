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
export { readRecorded } from "./read-recorded.ts";
export { ENGINES, type EngineChoice } from "./run-on-book.ts";
export { type ExactValues, simulate } from "./simulate.ts";
