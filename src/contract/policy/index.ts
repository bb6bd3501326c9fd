export { BanditIncrement } from "./bandit-increment.ts";
export { FloorPromise } from "./floor-promise.ts";
export { GateVerdict } from "./gate-verdict.ts";
export {
  advanceRevision,
  type CheckpointRef,
  loggedPolicy,
  nameRevision,
  PolicyRevision,
  type RevisionKey,
  revisionDrift,
  revisionKey,
  standsBefore,
} from "./policy-revision.ts";
export { type SplitPart, type SplitUnit, splitPart, splitRule, splitUnit } from "./split-rule.ts";
