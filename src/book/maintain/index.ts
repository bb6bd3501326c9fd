export { collectGarbage, type GarbageReport } from "./collect-garbage.ts";
export {
  type Verified,
  type VerifyRequest,
  verifyArtifacts,
  verifyBatches,
  verifyBook,
  verifyNamed,
} from "./verify.ts";
