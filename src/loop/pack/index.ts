export { brokenLinks, type PackLink } from "./pack-link.ts";
export { type Rerun, rerunPack } from "./rerun-pack.ts";
export { sealBenchPack, sealLoopPack } from "./seal-pack.ts";
export { type VerifiedPack, verifyPack } from "./verify-pack.ts";
export { withPackFolder } from "./with-pack-folder.ts";
