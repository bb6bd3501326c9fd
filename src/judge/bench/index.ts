export { type Ablation, type AblationResult, type AblationRow, parseAblation } from "./ablation.ts";
export { type ArmChange, compareResults, parseResult } from "./compare-results.ts";
export { differenceOverTasks, type PairedDifference, pairedDifference } from "./paired-arms.ts";
export type { ArmMeans, ArmResult, BenchResult } from "./result.ts";
