export { type EraseReport, eraseRollouts } from "./erase-rollouts.ts";
