/** The work queue: distributes items to workers and accepts their results. One interface for every driver (SQLite
 *  here, JetStream elsewhere); all drivers pass the suite `test/contracts/queue.ts`. One worker at a time claims an
 *  item. A claim without heartbeats expires, and the item goes to another worker. The fencing token of a claim is
 *  greater than that of every earlier claim of the item. So a worker that slept past its time to live cannot
 *  complete an item that it has lost. Keeps no rollouts: results are digests. */

import type { Digest, Json } from "../../base/index.ts";

/** Lifetime of a claim without a heartbeat. At exactly this age the claim is still valid. */
export const CLAIM_TTL_MS = 20_000;
export const HEARTBEAT_MS = 10_000;
export const MAX_ATTEMPTS = 3;
export const DEFAULT_LANE = "main";
/** Fits a message of every driver, with room for headers. */
export const MAX_PAYLOAD_BYTES = 512 * 1024;

export interface QueueItem {
  /** Derive it from the content: enqueueing the same work twice adds it once. */
  id: string;
  /** Input of the worker; small. Large data is in the book, by digest. */
  payload: Json;
  /** Lane of the item: one per launch, agent or worker. Workers claim from a lane. Default: DEFAULT_LANE. */
  lane?: string;
  /** Attempts before the item becomes dead. Default: MAX_ATTEMPTS. */
  maxAttempts?: number;
  /** Earliest time of a claim. Retries use it to back off. */
  notBeforeMs?: number;
}

/** Names one claim by its item and token. If `worker` is given, the claim is valid only for that worker. */
export interface ClaimKey {
  item: string;
  token: number;
  worker?: string;
}

export interface Claim extends ClaimKey {
  payload: Json;
  worker: string;
  /** Number of the attempt; 1 is the first. */
  attempt: number;
  expiresAtMs: number;
}

/** `done`: this call completed the item. `repeated`: the same result was there already, which counts as success.
 *  `expired`: the claim is lost. `conflict`: another result was there first and stays. */
export type CompleteOutcome =
  | { outcome: "done" }
  | { outcome: "repeated" }
  | { outcome: "expired" }
  | { outcome: "conflict"; result: Digest };

/** `attempt` is the number of the failed attempt. */
export type FailOutcome =
  | { outcome: "requeued"; attempt: number }
  | { outcome: "dead" }
  | { outcome: "expired" };

export interface QueueCounts {
  waiting: number;
  claimed: number;
  done: number;
  dead: number;
}

export type ItemState = { lane: string; attempt: number } & (
  | { state: "waiting" }
  | { state: "claimed"; worker: string; token: number; expiresAtMs: number }
  | { state: "done"; result: Digest }
  /** `reason` of the last failure. */
  | { state: "dead"; reason: string }
);

/** Source of a claim: a lane, or one item by its id. */
export type ClaimFrom = { lane: string } | { item: string };

/** An item that is done or dead. `cursor` is its position in the order of ends. */
export type SettledItem = { item: string; cursor: number } & Extract<ItemState, { state: "done" | "dead" }>;

export interface WorkQueue {
  /** Durable when it resolves. Refuses one id with two payloads (`item-conflict`) and then adds nothing. */
  enqueue(items: readonly QueueItem[]): Promise<{ added: number; known: number }>;
  /** Claims at most `limit` items, longest ready first. Expired claims are requeued first, or become dead after
   *  their last attempt. Empty if no item is ready. */
  claim(worker: string, limit: number, from?: ClaimFrom): Promise<Claim[]>;
  /** Extends claims by the time to live. Returns the lost claims. */
  heartbeat(claims: readonly ClaimKey[]): Promise<ClaimKey[]>;
  /** Durable when it resolves. `complete` and `fail` refuse an item that was never enqueued (`unknown-item`). */
  complete(claim: ClaimKey, result: Digest): Promise<CompleteOutcome>;
  /** `retryAfterMs` undefined: the item becomes dead without a retry. */
  fail(claim: ClaimKey, reason: { message: string; retryAfterMs?: number }): Promise<FailOutcome>;
  /** Returns claims without counting the attempt. A worker calls it at an orderly stop. */
  release(claims: readonly ClaimKey[]): Promise<void>;
  /** Puts dead items back with all their attempts. Returns the number of items that were dead. */
  revive(items: readonly string[]): Promise<number>;
  state(item: string): Promise<ItemState | undefined>;
  /** Items that ended after `cursor` (0: from the first), in order. A launcher reads results here, also after a
   *  resume. */
  settled(cursor: number, limit: number): Promise<SettledItem[]>;
  counts(): Promise<QueueCounts>;
  /** Waits for work or ended items without polling. */
  watch(): QueueWatch;
  close(): Promise<void>;
}

export interface QueueWatch {
  /** Resolves with true as soon as something may have changed since the last call (at first: since `watch`). Changes
   *  of this process and of others count. Resolves with false after `timeoutMs`. The passage of time is not a
   *  change: call `claim` again to find items that become ready by waiting. */
  changed(timeoutMs: number): Promise<boolean>;
}
