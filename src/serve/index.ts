export { declaredCandidates, listTable } from "./candidates.ts";
export {
  checkRouterConfig,
  DEFAULT_EXPLORATION,
  parseRouterConfig,
  type RouterConfig,
  type RouterConfigInput,
} from "./config.ts";
export { type Explanation, explainDecision } from "./explain.ts";
export { type HarmEvidence, type HarmRule, HarmWatch, type RoutedOutcome } from "./harm-watch.ts";
export { notHeldText, type PolicyReleases, readConfigured, settingsToJudge } from "./load.ts";
export { isPolicyTakenBack, isReleasedSince, releasedRevisionsOf } from "./released-routers.ts";
export { serveRewards } from "./reward-server.ts";
export { openRouter, type RouterStatus, ServedRouter, serveRouter } from "./router.ts";
export { routerMetrics } from "./router-metrics.ts";
export type { Served } from "./served.ts";
export { declaredSoftmax } from "./strategy.ts";
