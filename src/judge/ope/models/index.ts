export * from "./fitted-q.ts";
export * from "./propensity-model.ts";
export { recalibrate } from "./recalibrate.ts";
export * from "./reward-model.ts";
export * from "./reward-predictions.ts";
