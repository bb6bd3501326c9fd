export { type EraseOptions, type EraseReport, eraseRollouts, finishErasure } from "./erase-rollouts.ts";
