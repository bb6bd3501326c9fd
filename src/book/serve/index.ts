export { type AskedRouter, type AskRequest, askRouter } from "./ask-router.ts";
export { type ExplainedCall, type ExplainedStep, explainCall } from "./explain-call.ts";
export { type BookRouter, type HarmLook, openServedRouter, type ServeRequest } from "./served-router.ts";
