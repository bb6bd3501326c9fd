/** The queue in one SQLite file, for any number of processes on one machine; or in the memory of one process. In: a
 *  path (`queue.db`, or `:memory:`), a clock. Out: a WorkQueue. Durable: WAL with a full sync per group commit.
 *  Claims use partial indexes of waiting and claimed items, so their cost does not grow with the number of completed
 *  items. Not for network file systems: SQLite's locks need shared memory. */
import { type Clock, type Json, parseId } from "../../base/index.ts";
import { openSqlite, whenFree } from "../../store/index.ts";
import {
  type CheckedItem,
  checkItems,
  checkResult,
  itemConflict,
  reasonText,
  unknownItem,
} from "./check-items.ts";
import {
  claimItem,
  completeItem,
  expireItem,
  extendItem,
  failItem,
  holds,
  type ItemRecord,
  newItem,
  releaseItem,
  reviveItem,
  stateOf,
  type Transition,
} from "./item-record.ts";
import { MemoryItems } from "./memory-items.ts";
import {
  CLAIM_TTL_MS,
  type Claim,
  type ClaimFrom,
  type ClaimKey,
  DEFAULT_LANE,
  type QueueWatch,
  type SettledItem,
  type WorkQueue,
} from "./queue.ts";
import { makeCommit } from "./queue-commit.ts";
import { type Items, ItemTable, type StoredItem } from "./sqlite-items.ts";

export interface QueueOptions {
  clock: Clock;
  ttlMs?: number;
}

/** Milliseconds between checks for changes of other processes. A check is one read of shared memory. */
const LOOK_MS = 10;

/** Storage of a queue, with its read and write operations. They wait while another process holds the file. */
interface QueuePlace {
  readonly items: Items;
  readonly read: <T>(work: () => T) => Promise<T>;
  readonly transaction: (work: () => void) => Promise<void>;
  /** Changes when another process has written. */
  readonly version: () => number;
  readonly close: () => void;
}

const MEMORY = ":memory:";

export function openSqliteQueue(path: string, options: QueueOptions): WorkQueue {
  return openQueueAt(path === MEMORY ? placeInMemory() : placeInFile(path), options);
}

function placeInFile(path: string): QueuePlace {
  const db = openSqlite(path, { busyTimeoutMs: 10_000 });
  const items = ItemTable.open(db);
  const version = db.prepare("PRAGMA data_version");
  return {
    items,
    read: whenFree,
    // A busy transaction is rolled back and retried.
    transaction: (work) => whenFree(() => db.transaction(work)),
    version: () => version.get<{ data_version: number }>()!.data_version,
    close: () => db.close(),
  };
}

function placeInMemory(): QueuePlace {
  const now = async <T>(work: () => T): Promise<T> => work();
  return { items: new MemoryItems(), read: now, transaction: now, version: () => 0, close() {} };
}

function openQueueAt(place: QueuePlace, { clock, ttlMs = CLAIM_TTL_MS }: QueueOptions): WorkQueue {
  const { items, read } = place;
  const changes = watchChanges(place.version(), () => read(place.version));
  const { transaction } = place;
  const commit = makeCommit({ transaction, writes: () => items.writes, changed: changes.tell });
  const find = (id: string): StoredItem => items.find(id) ?? raise(unknownItem(id));
  const held = (key: ClaimKey, nowMs: number): StoredItem | undefined => {
    const item = items.find(key.item);
    return item !== undefined && holds(item, key, nowMs) ? item : undefined;
  };
  const apply = <Answer>(item: StoredItem, { answer, next }: Transition<Answer>): Answer => {
    if (next !== undefined) items.replace(item, next);
    return answer;
  };

  return {
    async enqueue(given) {
      const checked = checkItems(given);
      const added = await commit(() => addItems(items, checked, clock.nowMs()));
      return { added, known: given.length - added };
    },
    async claim(worker, limit, from = { lane: DEFAULT_LANE }) {
      parseId(worker, "worker");
      return commit(() => claimItems(items, { worker, limit, from, nowMs: clock.nowMs(), ttlMs }));
    },
    heartbeat: (claims) =>
      commit(() => {
        const nowMs = clock.nowMs();
        return claims.filter((key) => {
          const item = held(key, nowMs);
          if (item !== undefined) items.replace(item, extendItem(item, nowMs + ttlMs));
          return item === undefined;
        });
      }),
    async complete(claim, result) {
      checkResult(claim.item, result);
      return commit(() => {
        const found = find(claim.item);
        return apply(found, completeItem(found, { claim, result, nowMs: clock.nowMs() }));
      });
    },
    fail: (claim, { message, retryAfterMs }) =>
      commit(() => {
        const found = find(claim.item);
        const by = { claim, nowMs: clock.nowMs(), message: reasonText(message), retryAfterMs };
        return apply(found, failItem(found, by));
      }),
    release: (claims) =>
      commit(() => {
        for (const key of claims) {
          const item = held(key, clock.nowMs());
          if (item !== undefined) items.replace(item, releaseItem(item));
        }
      }),
    revive: (ids) =>
      commit(() => {
        const dead = [...new Set(ids)].map(find).filter((item) => item.state === "dead");
        for (const item of dead) items.replace(item, reviveItem(item, clock.nowMs()));
        return dead.length;
      }),
    async state(id) {
      const item = await read(() => items.find(id));
      return item === undefined ? undefined : stateOf(item);
    },
    async settled(cursor, limit) {
      const ends = await read(() => items.settledAfter(cursor, limit));
      return ends.map((item) => ({ item: item.id, cursor: item.settled!, ...stateOf(item) }) as SettledItem);
    },
    counts: () => read(() => items.counts()),
    watch: changes.watch,
    async close() {
      // Operations requested before the close complete before the close.
      await commit(() => {});
      changes.close();
      place.close();
    },
  };
}

function addItems(items: Items, checked: readonly CheckedItem[], nowMs: number): number {
  const fresh = checked.filter(({ id, payload }) => {
    const known = items.payloadOf(id);
    if (known !== undefined && known !== payload) throw itemConflict(id);
    return known === undefined;
  });
  for (const { id, payload, lane, maxAttempts, notBeforeMs } of fresh)
    items.insert(id, payload, newItem({ lane, maxAttempts, readyAtMs: Math.max(nowMs, notBeforeMs) }));
  return fresh.length;
}

function claimItems(
  items: Items,
  by: { worker: string; limit: number; from: ClaimFrom; nowMs: number; ttlMs: number },
): Claim[] {
  for (const item of items.expired(by.nowMs)) items.replace(item, expireItem(item));
  const expiresAtMs = by.nowMs + by.ttlMs;
  return findReady(items, by).map((item) => {
    const claimed: ItemRecord = claimItem(item, by.worker, expiresAtMs);
    items.replace(item, claimed);
    const { attempt, token } = claimed;
    const payload = JSON.parse(item.payload) as Json;
    return { item: item.id, token, payload, worker: by.worker, attempt, expiresAtMs };
  });
}

function findReady(
  items: Items,
  { from, nowMs, limit }: { from: ClaimFrom; nowMs: number; limit: number },
): StoredItem[] {
  if ("lane" in from) return items.ready(from.lane, nowMs, limit);
  const item = items.find(from.item);
  return item?.state === "waiting" && item.readyAtMs <= nowMs && limit > 0 ? [item] : [];
}

/** Wakes waiting callers: at once for a change in this process, at the next check for a change in another process. */
function watchChanges(first: number, look: () => Promise<number>) {
  let elsewhere = first;
  let changes = 0;
  const waiting = new Set<() => void>();
  const tell = () => {
    changes++;
    for (const wake of [...waiting]) wake();
  };
  const pause = (ms: number) =>
    new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      waiting.add(wake);
    });
  let closed = false;
  return {
    tell,
    close() {
      closed = true;
      tell();
    },
    watch(): QueueWatch {
      let seen = changes;
      return {
        async changed(timeoutMs) {
          for (let leftMs = timeoutMs; ; leftMs -= LOOK_MS) {
            const now = closed ? elsewhere : await look();
            if (now !== elsewhere) tell();
            elsewhere = now;
            const changed = changes !== seen;
            seen = changes;
            if (changed || leftMs <= 0) return changed;
            await pause(Math.min(LOOK_MS, leftMs));
          }
        },
      };
    },
  };
}

function raise(error: Error): never {
  throw error;
}
