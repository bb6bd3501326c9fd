export { chainDr } from "./chain-dr.ts";
export { directMethod } from "./direct-method.ts";
export { doublyRobust } from "./doubly-robust.ts";
export { drShrinkage } from "./dr-shrinkage.ts";
export {
  difference,
  type Estimate,
  estimateOf,
  influenceOf,
  meanOverRows,
  type Ratio,
  ratioOverRows,
  standardError,
  sum,
  unitValues,
} from "./estimate.ts";
export { ips } from "./ips.ts";
export { naiveAgreement } from "./naive.ts";
export { perDecisionIs } from "./per-decision-is.ts";
export { lambdaGrid, slope } from "./slope.ts";
export { snips } from "./snips.ts";
export { switchDr } from "./switch-dr.ts";
export { weightedPerDecisionIs } from "./weighted-per-decision-is.ts";
