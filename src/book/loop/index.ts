export { cutWindow } from "./cut-window.ts";
export { restoreCheckpoint, storedWeights } from "./restore-checkpoint.ts";
export {
  readTransitions,
  type SealedTransition,
  sealTransition,
  type TransitionRecords,
} from "./transitions.ts";
