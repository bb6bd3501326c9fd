export { type ConvertedRollouts, type ConvertRequest, convertRollouts } from "./convert-rollouts.ts";
