export { brokenLinks } from "./pack-link.ts";
export { rerunPack } from "./rerun-pack.ts";
export { sealAblationPack, sealBenchPack, sealLoopPack } from "./seal-pack.ts";
export { verifyPack } from "./verify-pack.ts";
export { withPackFolder } from "./with-pack-folder.ts";
