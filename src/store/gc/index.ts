export { eraseBlobs, planErasure } from "./erase.ts";
export { collectGarbage, type GcOptions, type GcReport } from "./gc.ts";
