export { checkSetup } from "./check-setup.ts";
export { collectGarbage } from "./collect-garbage.ts";
export { eraseRollouts } from "./erase-rollouts.ts";
export { type ExpireReport, expireRollouts } from "./expire-rollouts.ts";
export { type HeldJournal, openInJournal } from "./open-in-journal.ts";
export type { Repair } from "./repairs.ts";
export {
  type Verified,
  type VerifyRequest,
  verifyArtifacts,
  verifyBatches,
  verifyBook,
  verifyNamed,
} from "./verify.ts";
export { writeHead } from "./write-head.ts";
