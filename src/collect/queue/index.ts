export {
  CLAIM_TTL_MS,
  type Claim,
  type ClaimFrom,
  type ClaimKey,
  type CompleteOutcome,
  DEFAULT_LANE,
  type FailOutcome,
  HEARTBEAT_MS,
  type ItemState,
  MAX_ATTEMPTS,
  MAX_PAYLOAD_BYTES,
  type QueueCounts,
  type QueueItem,
  type QueueWatch,
  type SettledItem,
  type WorkQueue,
} from "./queue.ts";
export { openSqliteQueue, type QueueOptions } from "./sqlite-queue.ts";
