/** The work queue: who works on what, and who may say that it is done.
 *  One interface for every driver (SQLite here, JetStream elsewhere); `test/contracts/queue.ts` is the suite they all pass.
 *  An item is claimed by one worker at a time; a claim that is not kept alive expires and the item goes to another.
 *  The fencing token of a claim is greater than that of every earlier claim of the item, so a worker that slept
 *  through its time to live cannot complete what is no longer its own. Keeps no rollouts: results are digests. */

import type { Digest, Json } from "../../base/index.ts";

/** A claim lives this long without a heartbeat; at exactly this age it still holds. */
export const CLAIM_TTL_MS = 20_000;
export const HEARTBEAT_MS = 10_000;
export const MAX_ATTEMPTS = 3;
export const DEFAULT_LANE = "main";
/** Fits the message of every driver with room for headers. */
export const MAX_PAYLOAD_BYTES = 512 * 1024;

export interface QueueItem {
  /** Content-derived: enqueueing the same work twice adds it once. */
  id: string;
  /** What the worker needs to know; small. Bulk lives in the book, by digest. */
  payload: Json;
  /** Items of a lane go to those who ask for that lane: one per launch, agent or worker. DEFAULT_LANE unless given. */
  lane?: string;
  /** Attempts before the item is set aside as dead; MAX_ATTEMPTS unless given. */
  maxAttempts?: number;
  /** Not before this time: how a retry backs off. */
  notBeforeMs?: number;
}

/** Names one claim: of an item, by a token. With a worker it is a claim of that worker, and lost to every other. */
export interface ClaimKey {
  item: string;
  token: number;
  worker?: string;
}

export interface Claim extends ClaimKey {
  payload: Json;
  worker: string;
  /** 1 for the first. */
  attempt: number;
  expiresAtMs: number;
}

/** `done`: this call completed it. `repeated`: the same result was there already, which is as good.
 *  `expired`: the claim is lost. `conflict`: another result was there first and stands. */
export type CompleteOutcome =
  | { outcome: "done" }
  | { outcome: "repeated" }
  | { outcome: "expired" }
  | { outcome: "conflict"; result: Digest };

/** `attempt`: the one that failed. */
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
  /** `reason`: of the last failure. */
  | { state: "dead"; reason: string }
);

/** Where to look for work: in a lane, or at one item by name. */
export type ClaimFrom = { lane: string } | { item: string };

/** An item that came to its end, in the order of ends. */
export type SettledItem = { item: string; cursor: number } & Extract<ItemState, { state: "done" | "dead" }>;

export interface WorkQueue {
  /** Durable when it resolves. One id with two payloads is refused (`item-conflict`) and nothing is added. */
  enqueue(items: readonly QueueItem[]): Promise<{ added: number; known: number }>;
  /** At most `limit` items, those ready longest first. Expired claims are taken back before looking, and are dead if
   *  that was their last attempt. Empty if there is nothing. */
  claim(worker: string, limit: number, from?: ClaimFrom): Promise<Claim[]>;
  /** Extends claims by the time to live; returns those that are lost. */
  heartbeat(claims: readonly ClaimKey[]): Promise<ClaimKey[]>;
  /** Durable when it resolves. An item that was never enqueued is refused (`unknown-item`), here and in `fail`. */
  complete(claim: ClaimKey, result: Digest): Promise<CompleteOutcome>;
  /** `retryAfterMs` undefined: do not retry, set aside as dead. */
  fail(claim: ClaimKey, reason: { message: string; retryAfterMs?: number }): Promise<FailOutcome>;
  /** Gives claims back untouched, attempt not counted: a worker that stops in good order. */
  release(claims: readonly ClaimKey[]): Promise<void>;
  /** Puts dead items back with all their attempts; returns how many were dead. */
  revive(items: readonly string[]): Promise<number>;
  state(item: string): Promise<ItemState | undefined>;
  /** Ends after `cursor` (0: from the first), in order: how a launcher hears of results, and what a resumed one reads. */
  settled(cursor: number, limit: number): Promise<SettledItem[]>;
  counts(): Promise<QueueCounts>;
  /** For those who wait for work or for ends without asking all the time. */
  watch(): QueueWatch;
  close(): Promise<void>;
}

export interface QueueWatch {
  /** Resolves with true if something may have changed since the last call (at first: since `watch`), in this process
   *  or another, as soon as it has; with false after `timeoutMs`. Time that passes is no change: what becomes ready
   *  by waiting is found by asking again. */
  changed(timeoutMs: number): Promise<boolean>;
}
