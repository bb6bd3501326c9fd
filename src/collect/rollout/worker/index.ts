export { type ClaimState, claimState } from "./claim-checks.ts";
export { type LaunchSettings, launchId, type Overrides, type PlannedRollout, planner } from "./plan.ts";
export { ATTEMPTS, type Attempts } from "./run-claim.ts";
export { type GivenReceipt, openSealedIndex, type SealedIndex } from "./sealed-index.ts";
export { INLINE_LIMIT_BYTES, type Upload } from "./upload.ts";
export { startWorker, type Worker, type WorkerOptions } from "./worker.ts";
export { type ClaimRequest, type DeskOptions, makeDesk, type WorkerDesk } from "./worker-protocol.ts";
export { makeRegistration, type Registration } from "./worker-registration.ts";
