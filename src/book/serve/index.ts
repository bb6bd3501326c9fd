export { type AskedRouter, askRouter } from "./ask-router.ts";
export { embedderOf } from "./embedder-of.ts";
export { type ExplainedCall, explainCall } from "./explain-call.ts";
export { readRouterFile, routeCandidates, routerConfigOf, withAliases } from "./gateway-candidates.ts";
export { type ListedRollback, listRollbacks } from "./list-rollbacks.ts";
export { openNamedRouter, sealNamedRouter } from "./named-router.ts";
export {
  checkpointOf,
  isTakenBack,
  newestRelease,
  newestReleases,
  type Trusts,
  trustsOf,
} from "./policy-releases.ts";
export { type BookRouter, openServedRouter } from "./served-router.ts";
