/** The work queue: who works on what, and who may say that it is done.
 *  One interface for every driver (SQLite here, JetStream elsewhere); `queue.contract.ts` is the suite they all pass.
 *  An item is claimed by one worker at a time; a claim that is not kept alive expires and the item goes to another.
 *  The fencing token of a claim is greater than that of every earlier claim of the item, so a worker that slept
 *  through its time to live cannot complete what is no longer its own. Keeps no rollouts: results are digests. */

import type { Json } from "../../base/canonical-json.ts";
import type { Digest } from "../../base/digest.ts";

export interface QueueItem {
  /** Content-derived: enqueueing the same work twice adds it once. */
  id: string;
  /** What the worker needs to know; small. Bulk lives in the book, by digest. */
  payload: Json;
  /** Attempts before the item is set aside as dead. */
  maxAttempts?: number;
  /** Not before this time: how a retry backs off. */
  notBeforeMs?: number;
}

/** Names one claim: of an item, by a token. */
export interface ClaimKey {
  item: string;
  token: number;
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

export type ItemState = { state: "waiting" | "claimed" | "dead" } | { state: "done"; result: Digest };

export interface WorkQueue {
  /** Durable when it resolves. */
  enqueue(items: readonly QueueItem[]): Promise<{ added: number; known: number }>;
  /** At most `limit` items, oldest first. Expired claims are taken back before looking. Empty if there is nothing. */
  claim(worker: string, limit: number): Promise<Claim[]>;
  /** Extends claims by the time to live; returns those that are lost. */
  heartbeat(claims: readonly ClaimKey[]): Promise<ClaimKey[]>;
  /** Durable when it resolves. */
  complete(claim: ClaimKey, result: Digest): Promise<CompleteOutcome>;
  /** `retryAfterMs` undefined: do not retry, set aside as dead. */
  fail(claim: ClaimKey, reason: { message: string; retryAfterMs?: number }): Promise<FailOutcome>;
  /** Gives claims back untouched, attempt not counted: a worker that stops in good order. */
  release(claims: readonly ClaimKey[]): Promise<void>;
  state(item: string): Promise<ItemState | undefined>;
  counts(): Promise<QueueCounts>;
  close(): Promise<void>;
}
