export {
  type Claim,
  type ClaimKey,
  type CompleteOutcome,
  type FailOutcome,
  openSqliteQueue,
  type QueueCounts,
  type QueueItem,
  type QueueOptions,
  type SettledItem,
  type WorkQueue,
} from "../collect/queue/index.ts";
