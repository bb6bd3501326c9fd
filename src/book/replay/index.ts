export { gitCommitOf } from "./git-commit.ts";
export { withReplay } from "./replay-in-bucket.ts";
export { compactReplay, describeReplay, type ReplayDescription, validateReplay } from "./replay-store.ts";
export {
  extendReplay,
  growReplay,
  type NewReplayRequest,
  type ReplayRequest,
  type ReplayWritten,
  writeReplay,
} from "./write-replay.ts";
