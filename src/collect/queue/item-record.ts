/** The life cycle of one queued item as pure transitions: waiting → claimed → done | dead, and back to waiting. In:
 *  the record, the time. Out: the next record and the answer. Drivers differ only in the storage of records and in
 *  the way they replace a record (a transaction, a compare-and-set). */
import type { Digest } from "../../base/index.ts";
import type { ClaimKey, CompleteOutcome, FailOutcome, ItemState } from "./queue.ts";

export interface ItemRecord {
  readonly state: ItemState["state"];
  readonly lane: string;
  readonly maxAttempts: number;
  readonly readyAtMs: number;
  /** Attempt number of the current or last claim; 0 before the first claim. */
  readonly attempt: number;
  /** Counts every claim, also released claims. Never decreases. */
  readonly token: number;
  readonly worker: string | null;
  readonly expiresAtMs: number | null;
  readonly result: Digest | null;
  readonly reason: string | null;
}

/** Result of a transition. `next` undefined leaves the record unchanged. */
export interface Transition<Answer> {
  readonly answer: Answer;
  readonly next?: ItemRecord;
}

export function newItem(options: { lane: string; maxAttempts: number; readyAtMs: number }): ItemRecord {
  const fresh = { attempt: 0, token: 0, worker: null, expiresAtMs: null, result: null, reason: null };
  return { state: "waiting", ...options, ...fresh };
}

export function claimItem(item: ItemRecord, worker: string, expiresAtMs: number): ItemRecord {
  const { attempt, token } = item;
  return { ...item, state: "claimed", worker, expiresAtMs, attempt: attempt + 1, token: token + 1 };
}

/** True if the claim with `token` is still valid. A claim is valid up to and including its expiry time. */
export function holds(item: ItemRecord, { token, worker }: ClaimKey, nowMs: number): boolean {
  if (item.state !== "claimed" || item.token !== token || nowMs > item.expiresAtMs!) return false;
  return worker === undefined || worker === item.worker;
}

/** The record after its claim expired. The item keeps its place in line, unless that was its last attempt. */
export function expireItem(item: ItemRecord): ItemRecord {
  const reason = `the claim of ${item.worker} expired on attempt ${item.attempt}`;
  if (item.attempt >= item.maxAttempts) return { ...unclaimed(item), state: "dead", reason };
  return { ...unclaimed(item), state: "waiting", reason };
}

export function extendItem(item: ItemRecord, expiresAtMs: number): ItemRecord {
  return { ...item, expiresAtMs };
}

export function completeItem(
  item: ItemRecord,
  by: { claim: ClaimKey; result: Digest; nowMs: number },
): Transition<CompleteOutcome> {
  const { claim, result, nowMs } = by;
  if (item.state === "done")
    return {
      answer:
        item.result === result ? { outcome: "repeated" } : { outcome: "conflict", result: item.result! },
    };
  if (!holds(item, claim, nowMs)) return { answer: { outcome: "expired" } };
  return { answer: { outcome: "done" }, next: { ...unclaimed(item), state: "done", result } };
}

export function failItem(
  item: ItemRecord,
  by: { claim: ClaimKey; nowMs: number; message: string; retryAfterMs?: number | undefined },
): Transition<FailOutcome> {
  const { claim, nowMs, message: reason, retryAfterMs } = by;
  if (!holds(item, claim, nowMs)) return { answer: { outcome: "expired" } };
  const { attempt, maxAttempts } = item;
  if (retryAfterMs === undefined || attempt >= maxAttempts)
    return { answer: { outcome: "dead" }, next: { ...unclaimed(item), state: "dead", reason } };
  const readyAtMs = nowMs + retryAfterMs;
  return {
    answer: { outcome: "requeued", attempt },
    next: { ...unclaimed(item), state: "waiting", reason, readyAtMs },
  };
}

export function releaseItem(item: ItemRecord): ItemRecord {
  return { ...unclaimed(item), state: "waiting", attempt: item.attempt - 1 };
}

/** Puts a dead item back with all its attempts. Its token does not start over, so earlier claims stay fenced off. */
export function reviveItem(item: ItemRecord, readyAtMs: number): ItemRecord {
  const { lane, maxAttempts, token } = item;
  return { ...newItem({ lane, maxAttempts, readyAtMs }), token };
}

export function stateOf(item: ItemRecord): ItemState {
  const { lane, attempt, state } = item;
  switch (state) {
    case "waiting":
      return { lane, state, attempt };
    case "claimed":
      return {
        lane,
        state,
        attempt,
        worker: item.worker!,
        token: item.token,
        expiresAtMs: item.expiresAtMs!,
      };
    case "done":
      return { lane, state, attempt, result: item.result! };
    case "dead":
      return { lane, state, attempt, reason: item.reason! };
    default:
      return state satisfies never;
  }
}

function unclaimed(item: ItemRecord): ItemRecord {
  return { ...item, worker: null, expiresAtMs: null };
}
