export { type EraseOptions, type EraseReport, eraseRollouts, finishErasure } from "./erase-rollouts.ts";
export type { Remains } from "./remains.ts";
