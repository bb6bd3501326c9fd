/** The queue on a JetStream stream, for any number of processes on any number of machines. In: a place on NATS, a
 *  clock. Out: a WorkQueue. Every item is one record in the stream. An operation replaces the record only if it is
 *  unchanged, so of two competing processes the stream refuses one. Each process follows the records and finds work
 *  in memory; a stale view costs a refused write, never an item. Durability is that of the stream: three replicas,
 *  or one replica whose server always syncs. */
import { type Clock, parseId, type Rng, rngFrom } from "../../../base/index.ts";
import {
  type CheckedItem,
  checkItems,
  checkResult,
  itemConflict,
  reasonText,
  unknownItem,
} from "../check-items.ts";
import {
  claimItem,
  completeItem,
  expireItem,
  extendItem,
  failItem,
  holds,
  newItem,
  releaseItem,
  reviveItem,
  stateOf,
} from "../item-record.ts";
import {
  CLAIM_TTL_MS,
  type Claim,
  type ClaimFrom,
  type ClaimKey,
  type CompleteOutcome,
  DEFAULT_LANE,
  type FailOutcome,
  type ItemState,
  type QueueCounts,
  type QueueItem,
  type QueueWatch,
  type SettledItem,
  type WorkQueue,
} from "../queue.ts";
import type { QueueView } from "../queue-view.ts";
import { decodePayload, hashOf, type ViewedItem } from "./item-message.ts";
import { ItemRecords } from "./item-records.ts";
import { NatsStream, type StreamOptions } from "./nats-stream.ts";

interface NatsQueueOptions extends StreamOptions {
  readonly clock: Clock;
  readonly ttlMs?: number | undefined;
  /** Unique among all processes of the queue. */
  readonly writer: string;
}

/** Maximum number of unanswered writes of one call. */
const IN_FLIGHT = 512;
/** After conflicts, processes that compete for items choose among at most this many additional candidates. */
const MOST_SPREAD = 512;

export async function openQueueOnNats(options: NatsQueueOptions): Promise<WorkQueue> {
  const stream = await NatsStream.open(options);
  const records = new ItemRecords(stream, options.writer);
  try {
    await records.catchUp();
  } catch (error) {
    await records.close();
    throw error;
  }
  return new NatsQueue(records, options);
}

class NatsQueue implements WorkQueue {
  readonly #records: ItemRecords;
  readonly #view: QueueView<ViewedItem>;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #rng: Rng;
  readonly #pending = new Set<Promise<unknown>>();
  #spread = 0;

  constructor(records: ItemRecords, { clock, ttlMs, writer }: NatsQueueOptions) {
    this.#records = records;
    this.#view = records.view;
    this.#clock = clock;
    this.#ttlMs = ttlMs ?? CLAIM_TTL_MS;
    this.#rng = rngFrom(BigInt(`0x${Buffer.from(hashOf(writer), "base64url").toString("hex", 0, 8)}`));
  }

  enqueue(given: readonly QueueItem[]): Promise<{ added: number; known: number }> {
    return this.#track(async () => {
      const checked = checkItems(given);
      const fresh = checked.filter(({ id, payload }) => {
        const known = this.#view.get(id);
        if (known !== undefined && known.payloadHash !== hashOf(payload)) throw itemConflict(id);
        return known === undefined;
      });
      // The payload goes first: a payload without a record is harmless, a record without a payload could not be worked
      // on.
      await inGroups(fresh, (item) => this.#records.putPayload(item));
      const added = (await inGroups(fresh, (item) => this.#create(item))).filter(Boolean).length;
      return { added, known: given.length - added };
    });
  }

  claim(worker: string, limit: number, from: ClaimFrom = { lane: DEFAULT_LANE }): Promise<Claim[]> {
    return this.#track(async () => {
      parseId(worker, "worker");
      await this.#takeBackExpired();
      if ("item" in from) {
        const item = this.#view.get(from.item);
        const isReady = item?.state === "waiting" && item.readyAtMs <= this.#clock.nowMs() && limit > 0;
        return isReady ? defined([await this.#tryClaim(item, worker)]) : [];
      }
      const claims: Claim[] = [];
      while (claims.length < limit) {
        const wanted = limit - claims.length;
        const tried = this.#candidates(from.lane, wanted);
        if (tried.length === 0) break;
        const got = defined(await Promise.all(tried.map((item) => this.#tryClaim(item, worker))));
        claims.push(...got);
        this.#adaptSpread(tried.length - got.length, tried.length);
      }
      return claims;
    });
  }

  heartbeat(claims: readonly ClaimKey[]): Promise<ClaimKey[]> {
    return this.#track(async () => {
      const kept = await inGroups(claims, (key) => this.#extend(key));
      return claims.filter((_, i) => !kept[i]);
    });
  }

  complete(claim: ClaimKey, result: Parameters<WorkQueue["complete"]>[1]): Promise<CompleteOutcome> {
    return this.#track(async () => {
      checkResult(claim.item, result);
      return this.#records.change(claim.item, (item) =>
        completeItem(item, { claim, result, nowMs: this.#clock.nowMs() }),
      );
    });
  }

  fail(
    claim: ClaimKey,
    { message, retryAfterMs }: { message: string; retryAfterMs?: number },
  ): Promise<FailOutcome> {
    const reason = reasonText(message);
    return this.#track(() =>
      this.#records.change(claim.item, (item) =>
        failItem(item, { claim, nowMs: this.#clock.nowMs(), message: reason, retryAfterMs }),
      ),
    );
  }

  release(claims: readonly ClaimKey[]): Promise<void> {
    return this.#track(async () => {
      await inGroups(claims, async (key) => {
        if ((await this.#records.find(key.item)) === undefined) return;
        await this.#records.change<void>(key.item, (item) =>
          holds(item, key, this.#clock.nowMs())
            ? { answer: undefined, next: releaseItem(item) }
            : { answer: undefined },
        );
      });
    });
  }

  revive(items: readonly string[]): Promise<number> {
    return this.#track(async () => {
      const ids = [...new Set(items)];
      for (const id of ids) if ((await this.#records.find(id)) === undefined) throw unknownItem(id);
      const revived = await inGroups(ids, (id) =>
        this.#records.change<boolean>(id, (item) =>
          item.state === "dead"
            ? { answer: true, next: reviveItem(item, this.#clock.nowMs()) }
            : { answer: false },
        ),
      );
      return revived.filter(Boolean).length;
    });
  }

  async state(id: string): Promise<ItemState | undefined> {
    const item = await this.#records.find(id);
    return item === undefined ? undefined : stateOf(item);
  }

  async settled(cursor: number, limit: number): Promise<SettledItem[]> {
    this.#records.refuseIfDeaf();
    await this.#records.ownDelivered();
    return this.#view
      .settledAfter(cursor, limit)
      .map((item) => ({ item: item.id, cursor: item.seq, ...stateOf(item) }) as SettledItem);
  }

  async counts(): Promise<QueueCounts> {
    await this.#records.catchUp();
    return this.#view.counts();
  }

  watch(): QueueWatch {
    return this.#records.news.watch();
  }

  async close(): Promise<void> {
    // Operations requested before the close complete before the close.
    await Promise.allSettled(this.#pending);
    await this.#records.close();
  }

  async #create({ id, payload, lane, maxAttempts, notBeforeMs }: CheckedItem): Promise<boolean> {
    const readyAtMs = Math.max(this.#clock.nowMs(), notBeforeMs);
    const record = newItem({ lane, maxAttempts, readyAtMs });
    const payloadHash = hashOf(payload);
    const created = await this.#records.create(id, { ...record, payloadHash });
    if (created === undefined) await this.#records.refresh(id);
    return created !== undefined;
  }

  async #extend(key: ClaimKey): Promise<boolean> {
    if ((await this.#records.find(key.item)) === undefined) return false;
    return this.#records.change<boolean>(key.item, (item) => {
      const nowMs = this.#clock.nowMs();
      if (!holds(item, key, nowMs)) return { answer: false };
      return { answer: true, next: extendItem(item, nowMs + this.#ttlMs) };
    });
  }

  async #takeBackExpired(): Promise<void> {
    const expired = this.#view.takeExpired(this.#clock.nowMs());
    await inGroups(expired, async (item) => {
      try {
        await this.#records.replace(item, expireItem(item));
      } catch (error) {
        this.#view.offerExpired(item);
        throw error;
      }
    });
  }

  /** The first items of the line. After conflicts, a random choice among the first few, so that processes stop
   *  competing. */
  #candidates(lane: string, wanted: number): ViewedItem[] {
    const taken = this.#view.take(lane, this.#clock.nowMs(), wanted + this.#spread);
    if (taken.length <= wanted) return taken;
    const chosen = new Set(this.#rng.shuffle(taken.map((_, i) => i)).slice(0, wanted));
    for (const [i, item] of taken.entries()) if (!chosen.has(i)) this.#view.offer(item);
    return taken.filter((_, i) => chosen.has(i));
  }

  /** Grows fast and shrinks slowly: a conflict costs a round trip, a younger item costs nothing. */
  #adaptSpread(conflicts: number, tried: number): void {
    if (conflicts > 0) this.#spread = Math.min(MOST_SPREAD, Math.max(2 * this.#spread, 4 * tried));
    else this.#spread -= Math.ceil(this.#spread / 16);
  }

  async #tryClaim(item: ViewedItem, worker: string): Promise<Claim | undefined> {
    const expiresAtMs = this.#clock.nowMs() + this.#ttlMs;
    try {
      const [claimed, payload] = await Promise.all([
        this.#records.replace(item, claimItem(item, worker, expiresAtMs)),
        this.#records.payload(item.id),
      ]);
      if (claimed === undefined) return undefined;
      if (payload === undefined) throw unknownItem(item.id);
      const { token, attempt } = claimed;
      return {
        item: item.id,
        token,
        payload: decodePayload(payload.text, payload),
        worker,
        attempt,
        expiresAtMs,
      };
    } catch (error) {
      this.#view.offer(item);
      throw error;
    }
  }

  #track<T>(work: () => Promise<T>): Promise<T> {
    const done = (async () => {
      this.#records.refuseIfDeaf();
      return await work();
    })();
    this.#pending.add(done);
    const forget = () => this.#pending.delete(done);
    done.then(forget, forget);
    return done;
  }
}

async function inGroups<T, R>(all: readonly T[], work: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += IN_FLIGHT)
    results.push(...(await Promise.all(all.slice(from, from + IN_FLIGHT).map(work))));
  return results;
}

function defined<T>(values: readonly (T | undefined)[]): T[] {
  return values.filter((value) => value !== undefined);
}
