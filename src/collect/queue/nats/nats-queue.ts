/** The queue on a JetStream stream, for any number of processes on any number of machines.
 *  In: a place on NATS, a clock. Out: a WorkQueue. Every item is one record in the stream; every operation replaces it
 *  only if it is unchanged, so of two processes that want the same item one is refused. Each process follows the records
 *  and finds work in memory; what it does not know yet costs it a refused write, never an item.
 *  Durable as the stream is: three replicas, or one whose server syncs always. */
import { type Clock, parseId, type Rng, RollbookError, rngFrom } from "../../../base/index.ts";
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
  type ItemRecord,
  newItem,
  releaseItem,
  reviveItem,
  stateOf,
  type Transition,
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
import { decodeItem, decodePayload, encodeItem, hashOf, idOf, tokenOf } from "./item-message.ts";
import { NatsStream, type StreamMessage, type StreamOptions } from "./nats-stream.ts";
import { QueueView, type ViewedItem } from "./queue-view.ts";

export interface NatsQueueOptions extends StreamOptions {
  readonly clock: Clock;
  readonly ttlMs?: number | undefined;
  /** Unique among all processes of the queue. */
  readonly writer: string;
}

/** Writes of one call that wait for their answer at a time. */
const IN_FLIGHT = 512;
/** Processes that want the same items choose among so many more after a conflict, at most. */
const MOST_SPREAD = 512;
/** A message that is in the stream and was not delivered for so long is asked for again; and given up after. */
const MISSED_MS = 2_000;
const CAUGHT_UP_MS = 60_000;

export async function openQueueOnNats(options: NatsQueueOptions): Promise<WorkQueue> {
  const stream = await NatsStream.open(options);
  const queue = new NatsQueue(stream, options);
  try {
    await queue.catchUp();
  } catch (error) {
    await queue.close();
    throw error;
  }
  return queue;
}

class NatsQueue implements WorkQueue {
  readonly #stream: NatsStream;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #writer: string;
  readonly #view = new QueueView();
  readonly #bell = new Bell();
  readonly #delivered = new Bell();
  readonly #rng: Rng;
  readonly #pending = new Set<Promise<unknown>>();
  #writes = 0;
  /** The newest sequence that the stream delivered, and the newest that this process wrote. */
  #deliveredSeq = 0;
  #ownSeq = 0;
  #spread = 0;
  #fault: { error: unknown } | undefined;

  constructor(stream: NatsStream, { clock, ttlMs, writer }: NatsQueueOptions) {
    this.#stream = stream;
    this.#clock = clock;
    this.#ttlMs = ttlMs ?? CLAIM_TTL_MS;
    this.#writer = writer;
    this.#rng = rngFrom(BigInt(`0x${Buffer.from(hashOf(writer), "base64url").toString("hex", 0, 8)}`));
    stream.follow(
      `${stream.prefix}item.>`,
      (message) => this.#hear(message),
      (error) => {
        this.#fault = { error };
        this.#delivered.ring();
        this.#bell.ring();
      },
    );
  }

  enqueue(given: readonly QueueItem[]): Promise<{ added: number; known: number }> {
    return this.#track(async () => {
      const checked = checkItems(given);
      const fresh = checked.filter(({ id, payload }) => {
        const known = this.#view.get(id);
        if (known !== undefined && known.payloadHash !== hashOf(payload)) throw itemConflict(id);
        return known === undefined;
      });
      // A payload without a record is nothing; a record without its payload could not be worked on.
      await inGroups(fresh, (item) => this.#putPayload(item));
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
      return this.#change(claim.item, (item) =>
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
      this.#change(claim.item, (item) =>
        failItem(item, { claim, nowMs: this.#clock.nowMs(), message: reason, retryAfterMs }),
      ),
    );
  }

  release(claims: readonly ClaimKey[]): Promise<void> {
    return this.#track(async () => {
      await inGroups(claims, async (key) => {
        if ((await this.#find(key.item)) === undefined) return;
        await this.#change<void>(key.item, (item) =>
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
      for (const id of ids) if ((await this.#find(id)) === undefined) throw unknownItem(id);
      const revived = await inGroups(ids, (id) =>
        this.#change<boolean>(id, (item) =>
          item.state === "dead"
            ? { answer: true, next: reviveItem(item, this.#clock.nowMs()) }
            : { answer: false },
        ),
      );
      return revived.filter(Boolean).length;
    });
  }

  async state(id: string): Promise<ItemState | undefined> {
    const item = await this.#find(id);
    return item === undefined ? undefined : stateOf(item);
  }

  async settled(cursor: number, limit: number): Promise<SettledItem[]> {
    this.#refuseIfDeaf();
    // The order of ends is the stream's: what this process ended itself counts once the stream has delivered it.
    await this.#deliveredUpTo(this.#ownSeq);
    return this.#view
      .settledAfter(cursor, limit)
      .map((item) => ({ item: item.id, cursor: item.seq, ...stateOf(item) }) as SettledItem);
  }

  async counts(): Promise<QueueCounts> {
    await this.catchUp();
    return this.#view.counts();
  }

  watch(): QueueWatch {
    return this.#bell.watch();
  }

  /** Everything that was stored before this call is known when it resolves. */
  async catchUp(): Promise<void> {
    const newest = await this.#stream.read(`${this.#stream.prefix}item.>`);
    await this.#deliveredUpTo(newest?.seq ?? 0);
  }

  async close(): Promise<void> {
    // What was asked before closing is done before closing.
    await Promise.allSettled(this.#pending);
    this.#bell.close();
    await this.#stream.close();
  }

  #hear(message: StreamMessage): void {
    const item = viewed(message, this.#stream.prefix);
    const isNews = this.#view.deliver(item);
    this.#deliveredSeq = message.seq;
    this.#delivered.ring();
    if (isNews) this.#bell.ring();
  }

  async #deliveredUpTo(seq: number): Promise<void> {
    const watch = this.#delivered.watch();
    const deadlineMs = performance.now() + CAUGHT_UP_MS;
    while (this.#deliveredSeq < seq) {
      if (this.#fault !== undefined) throw this.#fault.error;
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0)
        throw new RollbookError(
          "queue-away",
          { delivered: this.#deliveredSeq, wanted: seq },
          `the queue delivered no record for ${CAUGHT_UP_MS / 1000} s: message ${this.#deliveredSeq} of ${seq}. Check nats-server; then give the same command again.`,
        );
      if (!(await watch.changed(Math.min(leftMs, MISSED_MS)))) this.#stream.followAgain();
    }
  }

  /** Asks the stream where this process knows nothing. */
  async #find(id: string): Promise<ViewedItem | undefined> {
    return this.#view.get(id) ?? (await this.#refresh(id));
  }

  async #refresh(id: string): Promise<ViewedItem | undefined> {
    const message = await this.#stream.read(this.#subject("item", id));
    if (message === undefined) return undefined;
    const item = viewed(message, this.#stream.prefix);
    const known = this.#view.get(id);
    if (known !== undefined && known.seq > item.seq)
      throw new RollbookError(
        "queue-went-back",
        { item: id, known: known.seq, found: item.seq },
        `item ${id}: the stream is at ${item.seq}, and was at ${known.seq}. The server has lost records; give the same command again.`,
      );
    if (this.#view.apply(item)) this.#bell.ring();
    return item;
  }

  /** Decides from what is known, writes if nothing changed, and decides again if something did. An answer that changes
   *  nothing is given only on the word of the stream itself. */
  async #change<Answer>(id: string, decide: (item: ItemRecord) => Transition<Answer>): Promise<Answer> {
    let item = await this.#find(id);
    for (let isFresh = false; ; ) {
      if (item === undefined) throw unknownItem(id);
      const { answer, next } = decide(item);
      if (next === undefined && isFresh) return answer;
      if (next !== undefined && (await this.#replace(item, next)) !== undefined) return answer;
      item = await this.#refresh(id);
      isFresh = true;
    }
  }

  /** The new item; undefined if another process was first. */
  async #replace(item: ViewedItem, next: ItemRecord): Promise<ViewedItem | undefined> {
    const { id, place, payloadHash } = item;
    return this.#put(id, { ...next, place, payloadHash, write: this.#newWrite() }, item.seq);
  }

  async #put(
    id: string,
    item: Omit<ViewedItem, "id" | "seq" | "place"> & { place?: number },
    after: number,
  ): Promise<ViewedItem | undefined> {
    const subject = this.#subject("item", id);
    const seq = await this.#stream.write({
      ...{ subject, text: encodeItem(item), after },
      isOwn: (there) => viewed(there, this.#stream.prefix).write === item.write,
    });
    if (seq === undefined) return undefined;
    const stored = { ...item, id, seq, place: item.place ?? seq };
    this.#ownSeq = Math.max(this.#ownSeq, seq);
    if (this.#view.apply(stored)) this.#bell.ring();
    return stored;
  }

  async #putPayload({ id, payload }: CheckedItem): Promise<void> {
    const subject = this.#subject("payload", id);
    const isOwn = (there: StreamMessage) => there.text === payload;
    if ((await this.#stream.write({ subject, text: payload, after: 0, isOwn })) !== undefined) return;
    const there = await this.#stream.read(subject);
    if (there === undefined || !isOwn(there)) throw itemConflict(id);
  }

  async #create({ id, payload, lane, maxAttempts, notBeforeMs }: CheckedItem): Promise<boolean> {
    const readyAtMs = Math.max(this.#clock.nowMs(), notBeforeMs);
    const record = newItem({ lane, maxAttempts, readyAtMs });
    const payloadHash = hashOf(payload);
    const created = await this.#put(id, { ...record, payloadHash, write: this.#newWrite() }, 0);
    if (created === undefined) await this.#refresh(id);
    return created !== undefined;
  }

  async #extend(key: ClaimKey): Promise<boolean> {
    if ((await this.#find(key.item)) === undefined) return false;
    return this.#change<boolean>(key.item, (item) => {
      const nowMs = this.#clock.nowMs();
      if (!holds(item, key, nowMs)) return { answer: false };
      return { answer: true, next: extendItem(item, nowMs + this.#ttlMs) };
    });
  }

  async #takeBackExpired(): Promise<void> {
    const expired = this.#view.takeExpired(this.#clock.nowMs());
    await inGroups(expired, async (item) => {
      try {
        await this.#replace(item, expireItem(item));
      } catch (error) {
        this.#view.offerExpired(item);
        throw error;
      }
    });
  }

  /** The first of the line; after conflicts, some of the first few, so that processes stop wanting the same ones. */
  #candidates(lane: string, wanted: number): ViewedItem[] {
    const taken = this.#view.take(lane, this.#clock.nowMs(), wanted + this.#spread);
    if (taken.length <= wanted) return taken;
    const chosen = new Set(this.#rng.shuffle(taken.map((_, i) => i)).slice(0, wanted));
    for (const [i, item] of taken.entries()) if (!chosen.has(i)) this.#view.offer(item);
    return taken.filter((_, i) => chosen.has(i));
  }

  /** Grows fast and shrinks slowly: a conflict costs a round trip, a younger item nothing. */
  #adaptSpread(conflicts: number, tried: number): void {
    if (conflicts > 0) this.#spread = Math.min(MOST_SPREAD, Math.max(2 * this.#spread, 4 * tried));
    else this.#spread -= Math.ceil(this.#spread / 16);
  }

  async #tryClaim(item: ViewedItem, worker: string): Promise<Claim | undefined> {
    const expiresAtMs = this.#clock.nowMs() + this.#ttlMs;
    try {
      const [claimed, payload] = await Promise.all([
        this.#replace(item, claimItem(item, worker, expiresAtMs)),
        this.#stream.readFixed(this.#subject("payload", item.id)),
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

  #subject(kind: "item" | "payload", id: string): string {
    return `${this.#stream.prefix}${kind}.${tokenOf(id)}`;
  }

  #newWrite(): string {
    return `${this.#writer}.${this.#writes++}`;
  }

  /** A process that hears nothing more would find no work and no ends, and wait for ever. */
  #refuseIfDeaf(): void {
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  #track<T>(work: () => Promise<T>): Promise<T> {
    const done = (async () => {
      this.#refuseIfDeaf();
      return await work();
    })();
    this.#pending.add(done);
    const forget = () => this.#pending.delete(done);
    done.then(forget, forget);
    return done;
  }
}

/** Wakes those who wait for something to happen. */
class Bell {
  #rings = 0;
  #closed = false;
  readonly #waiting = new Set<() => void>();

  ring(): void {
    this.#rings++;
    for (const wake of this.#waiting) wake();
  }

  close(): void {
    this.#closed = true;
    this.ring();
  }

  watch(): QueueWatch {
    let seen = this.#rings;
    return {
      changed: async (timeoutMs) => {
        if (this.#rings === seen && !this.#closed) await this.#next(timeoutMs);
        const changed = this.#rings !== seen;
        seen = this.#rings;
        return changed;
      },
    };
  }

  #next(timeoutMs: number): Promise<void> {
    return new Promise((done) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        done();
      };
      const timer = setTimeout(wake, timeoutMs);
      this.#waiting.add(wake);
    });
  }
}

function viewed({ subject, seq, text }: StreamMessage, prefix: string): ViewedItem {
  return {
    ...decodeItem(text, { subject, seq }),
    id: idOf(subject.slice(prefix.length + "item.".length)),
    seq,
  };
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
