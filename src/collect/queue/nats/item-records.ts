/** The item records of a queue in a stream, with a view of them in this process. In: changes to items. Out: the
 *  items as the stream has them. A write succeeds only if its base record is unchanged, so of two competing
 *  processes the stream refuses one. Each process follows the stream, and reads the stream for items missing in its
 *  view. Does not decide which changes are allowed. */
import { RollbookError } from "../../../base/index.ts";
import { type CheckedItem, itemConflict, unknownItem } from "../check-items.ts";
import type { ItemRecord, Transition } from "../item-record.ts";
import { QueueView } from "../queue-view.ts";
import { Bell } from "./bell.ts";
import { decodeItem, encodeItem, idOf, tokenOf, type ViewedItem } from "./item-message.ts";
import type { NatsStream, StreamMessage } from "./nats-stream.ts";

/** After MISSED_MS without an expected delivery, the process follows the stream again. After CAUGHT_UP_MS the call
 *  fails. */
const MISSED_MS = 2_000;
const CAUGHT_UP_MS = 60_000;

export class ItemRecords {
  readonly #stream: NatsStream;
  /** Distinguishes the writes of this process from those of all other processes. */
  readonly #writer: string;
  readonly view = new QueueView<ViewedItem>();
  /** Rings when an item has changed. */
  readonly news = new Bell();
  readonly #delivered = new Bell();
  #writes = 0;
  /** The newest sequence that the stream delivered, and the newest sequence that this process wrote. */
  #deliveredSeq = 0;
  #ownSeq = 0;
  #fault: { error: unknown } | undefined;

  constructor(stream: NatsStream, writer: string) {
    this.#stream = stream;
    this.#writer = writer;
    stream.follow(
      `${stream.prefix}item.>`,
      (message) => this.#hear(message),
      (error) => {
        this.#fault = { error };
        this.#delivered.ring();
        this.news.ring();
      },
    );
  }

  /** Resolves when this process knows every record that was stored before the call. */
  async catchUp(): Promise<void> {
    const newest = await this.#stream.read(`${this.#stream.prefix}item.>`);
    await this.#deliveredUpTo(newest?.seq ?? 0);
  }

  /** Throws if this process no longer receives records: it would find no work and no ended items, and wait forever. */
  refuseIfDeaf(): void {
    if (this.#fault !== undefined) throw this.#fault.error;
  }

  #hear(message: StreamMessage): void {
    const item = viewed(message, this.#stream.prefix);
    const isNews = this.view.deliver(item);
    this.#deliveredSeq = message.seq;
    this.#delivered.ring();
    if (isNews) this.news.ring();
  }

  /** Resolves when the stream has delivered this process's own writes. Own writes count only then, in stream order. */
  ownDelivered(): Promise<void> {
    return this.#deliveredUpTo(this.#ownSeq);
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

  /** Reads the stream if the item is missing in the view. */
  async find(id: string): Promise<ViewedItem | undefined> {
    return this.view.get(id) ?? (await this.refresh(id));
  }

  async refresh(id: string): Promise<ViewedItem | undefined> {
    const before = this.view.get(id);
    const message = await this.#stream.read(this.#subject("item", id));
    if (message === undefined) return undefined;
    const item = viewed(message, this.#stream.prefix);
    if (before !== undefined && before.seq > item.seq)
      throw new RollbookError(
        "queue-went-back",
        { item: id, known: before.seq, found: item.seq },
        `item ${id}: the stream is at ${item.seq}, and was at ${before.seq}. The server has lost records; give the same command again.`,
      );
    // A later record may have arrived during the read. The later record wins.
    const known = this.view.get(id);
    if (known !== undefined && known.seq > item.seq) return known;
    if (this.view.apply(item)) this.news.ring();
    return item;
  }

  /** Decides from the known record and writes if the record is unchanged; otherwise reads it and decides again. An
   *  answer without a write is returned only after a read from the stream itself. */
  async change<Answer>(id: string, decide: (item: ItemRecord) => Transition<Answer>): Promise<Answer> {
    let item = await this.find(id);
    for (let isFresh = false; ; ) {
      if (item === undefined) throw unknownItem(id);
      const { answer, next } = decide(item);
      if (next === undefined && isFresh) return answer;
      if (next !== undefined && (await this.replace(item, next)) !== undefined) return answer;
      item = await this.refresh(id);
      isFresh = true;
    }
  }

  /** The new item. Undefined if another process replaced the record first. */
  async replace(item: ViewedItem, next: ItemRecord): Promise<ViewedItem | undefined> {
    const { id, place, payloadHash } = item;
    return this.#put(id, { ...next, place, payloadHash, write: this.#newWrite() }, item.seq);
  }

  /** Creates the first record of an item. Undefined if another process created it first. */
  create(
    id: string,
    item: Omit<ViewedItem, "id" | "seq" | "place" | "write">,
  ): Promise<ViewedItem | undefined> {
    return this.#put(id, { ...item, write: this.#newWrite() }, 0);
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
    if (this.view.apply(stored)) this.news.ring();
    return stored;
  }

  async putPayload({ id, payload }: CheckedItem): Promise<void> {
    const subject = this.#subject("payload", id);
    const isOwn = (there: StreamMessage) => there.text === payload;
    if ((await this.#stream.write({ subject, text: payload, after: 0, isOwn })) !== undefined) return;
    const there = await this.#stream.read(subject);
    if (there === undefined || !isOwn(there)) throw itemConflict(id);
  }

  /** The payload of an item. Undefined if the stream has none. */
  payload(id: string): Promise<StreamMessage | undefined> {
    return this.#stream.readFixed(this.#subject("payload", id));
  }

  close(): Promise<void> {
    this.news.close();
    return this.#stream.close();
  }

  #subject(kind: "item" | "payload", id: string): string {
    return `${this.#stream.prefix}${kind}.${tokenOf(id)}`;
  }

  #newWrite(): string {
    return `${this.#writer}.${this.#writes++}`;
  }
}

function viewed({ subject, seq, text }: StreamMessage, prefix: string): ViewedItem {
  return {
    ...decodeItem(text, { subject, seq }),
    id: idOf(subject.slice(prefix.length + "item.".length)),
    seq,
  };
}
