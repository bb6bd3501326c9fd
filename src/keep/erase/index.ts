export type { Subject } from "./erasable-records.ts";
export { type EraseOptions, type EraseReport, eraseRollouts } from "./erase-rollouts.ts";
