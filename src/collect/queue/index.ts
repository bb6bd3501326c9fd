export { type NatsQueueSettings, openNatsQueue } from "./open-nats-queue.ts";
export {
  CLAIM_TTL_MS,
  type Claim,
  type ClaimKey,
  type CompleteOutcome,
  type FailOutcome,
  HEARTBEAT_MS,
  type ItemState,
  MAX_ATTEMPTS,
  type QueueCounts,
  type QueueItem,
  type SettledItem,
  type WorkQueue,
} from "./queue.ts";
export { QUEUE_VARIABLES, queueDriver } from "./queue-drivers.ts";
export { openSqliteQueue, type QueueOptions } from "./sqlite-queue.ts";
