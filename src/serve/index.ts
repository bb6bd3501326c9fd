export { declaredCandidates } from "./candidates.ts";
export {
  checkRouterConfig,
  parseRouterConfig,
  type RollbackRule,
  type RouterConfig,
  type RouterConfigInput,
} from "./config.ts";
export { type ExplainRequest, type Explanation, explainDecision } from "./explain.ts";
export { type HarmEvidence, type HarmRule, HarmWatch, type Outcome } from "./harm-watch.ts";
export type { LoadPlace, Releases } from "./load.ts";
export type { Standing } from "./release.ts";
export {
  openRouter,
  type Reloaded,
  type RouterCounts,
  type RouterPlace,
  type RouterStatus,
  type ServedAnswer,
  ServedRouter,
  type ServeQuestion,
} from "./router.ts";
export type { Served } from "./served.ts";
