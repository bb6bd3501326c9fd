export { collectOrphansInBucket } from "./collect-orphans-in-bucket.ts";
export { gitCommitOf } from "./git-commit.ts";
export { withReplay } from "./replay-in-bucket.ts";
export { compactReplay, describeReplay, validateReplay } from "./replay-store.ts";
export { extendReplay, growReplay, writeReplay } from "./write-replay.ts";
