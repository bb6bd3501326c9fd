export { promiseFloor } from "./calibrate.ts";
export { checkLog, type LogCheck } from "./check-log.ts";
export { evaluateCheckpoint, type JudgeRequest, type PolicyEvaluation } from "./evaluate.ts";
export { evaluateKnownTarget } from "./evaluate-target.ts";
export { type GateRequest, type GateResult, gateCheckpoints } from "./gate.ts";
export type { JudgeRows } from "./judge-rows.ts";
export { type LoadedSetup, loadPolicy, setupOf } from "./load-policy.ts";
export { PROMISE_TERMS, type PromiseTerms } from "./promise-terms.ts";
export { rewardReport } from "./reward-report.ts";
