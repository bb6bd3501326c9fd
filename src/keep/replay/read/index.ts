export { type DenseActor, type DenseSupervision, type DenseView, readDense } from "./dense-reader.ts";
export {
  type ActorInputs,
  actorInputs,
  type Minibatch,
  type MinibatchOptions,
  minibatches,
  type Supervision,
  statesOf,
  supervision,
} from "./minibatches.ts";
export {
  type Block,
  type OpenReplayOptions,
  openReplay,
  type PlacedSegment,
  ReplayStore,
  readCurrentManifest,
  rootFault,
} from "./replay-store.ts";
export {
  type Difference,
  findDifferences,
  findSplitLeaks,
  HOMOGENEOUS_FIELDS,
  requireDisjointSplits,
  requireHomogeneous,
  type SplitLeak,
  SplitWatch,
  type StoreField,
} from "./store-checks.ts";
