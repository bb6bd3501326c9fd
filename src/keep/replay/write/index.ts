export { endingFacts, sumOf } from "./chain-rows.ts";
export { type CompactOptions, compactReplay } from "./compact.ts";
export {
  buildCells,
  buildStates,
  CELL_COLUMNS,
  CELL_NEEDS,
  STATE_COLUMNS,
  STATE_NEEDS,
} from "./dense-view.ts";
export type { LateFeedback } from "./late-labels.ts";
export { collectOrphans, isReplayStore, listOrphans } from "./orphans.ts";
export { sourceKey, targetKey } from "./segment-writer.ts";
export { addStoredChains, readSources, readTargets } from "./stored-rows.ts";
export { attributesOf, type Layout } from "./table-writer.ts";
export { appendReplay, type WriteOptions, type WriteResult, writeReplay } from "./write.ts";
export type { AppendOptions, SegmentLimits, WriteProgress } from "./write-session.ts";
