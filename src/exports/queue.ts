export {
  type Claim,
  type ClaimKey,
  type CompleteOutcome,
  type FailOutcome,
  type NatsQueueSettings,
  openNatsQueue,
  openSqliteQueue,
  type QueueCounts,
  type QueueItem,
  type QueueOptions,
  type SettledItem,
  type WorkQueue,
} from "../collect/queue/index.ts";
