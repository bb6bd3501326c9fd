/** What one process knows of a queue, as of one on a stream: the newest record of every item, and who is ready, expired or
 *  ended. In: records with their sequences, in any order. Out: answers from memory. A newer sequence replaces an older
 *  one, so hearing of a record twice changes nothing. Does no I/O and knows no rules: `item-record.ts` has those. */
import { DueHeap } from "./due-heap.ts";
import type { ItemRecord } from "./item-record.ts";
import type { QueueCounts } from "./queue.ts";

export interface PlacedItem extends ItemRecord {
  readonly id: string;
  /** The first sequence of the item: its place in line, which it keeps. */
  readonly place: number;
  /** Of this record; a replacement has a greater one. */
  readonly seq: number;
}

export class QueueView<Item extends PlacedItem> {
  readonly #items = new Map<string, Item>();
  readonly #ready = new Map<string, DueHeap>();
  readonly #claimed = new DueHeap();
  /** The earliest entry of each item in that heap. A heartbeat adds none: the entry is moved when its time comes, so a
   *  process that never claims does not collect one for every heartbeat of the queue. */
  readonly #watched = new Map<string, number>();
  /** Ends in the order of the stream. An entry counts while the item still has that sequence. */
  readonly #ends: { seq: number; id: string }[] = [];
  readonly #counts: QueueCounts = { waiting: 0, claimed: 0, done: 0, dead: 0 };

  get(id: string): Item | undefined {
    return this.#items.get(id);
  }

  counts(): QueueCounts {
    return { ...this.#counts };
  }

  /** Whether this was news. */
  apply(item: Item): boolean {
    const known = this.#items.get(item.id);
    if (known !== undefined && known.seq >= item.seq) return false;
    if (known !== undefined) this.#counts[known.state]--;
    this.#counts[item.state]++;
    this.#items.set(item.id, item);
    if (item.state === "waiting") this.offer(item);
    if (item.state === "claimed") this.#watchClaim(item);
    return true;
  }

  /** The stream has delivered this record: from here on its place among the ends is known. */
  deliver(item: Item): boolean {
    const isNews = this.apply(item);
    if ((item.state === "done" || item.state === "dead") && this.#items.get(item.id)?.seq === item.seq)
      this.#ends.push({ seq: item.seq, id: item.id });
    return isNews;
  }

  /** Puts an item that `take` gave back into its line, if it still waits. */
  offer({ id, seq }: Pick<Item, "id" | "seq">): void {
    const item = this.#items.get(id);
    if (item === undefined || item.seq !== seq || item.state !== "waiting") return;
    let heap = this.#ready.get(item.lane);
    if (heap === undefined) {
      heap = new DueHeap();
      this.#ready.set(item.lane, heap);
    }
    heap.push({ id, dueMs: item.readyAtMs, place: item.place, seq });
  }

  /** Items that are ready, longest first, taken out of their line: a second call does not give them again. */
  take(lane: string, nowMs: number, limit: number): Item[] {
    const heap = this.#ready.get(lane);
    const found: Item[] = [];
    while (heap !== undefined && found.length < limit) {
      const head = heap.peek();
      if (head === undefined || head.dueMs > nowMs) break;
      heap.pop();
      const item = this.#items.get(head.id)!;
      if (item.seq === head.seq && item.state === "waiting") found.push(item);
    }
    return found;
  }

  /** Claims that have run out, taken out of their line. */
  takeExpired(nowMs: number): Item[] {
    const found: Item[] = [];
    for (;;) {
      const head = this.#claimed.peek();
      if (head === undefined || head.dueMs >= nowMs) return found;
      this.#claimed.pop();
      if (this.#watched.get(head.id) !== head.dueMs) continue; // an earlier entry has spoken for the item
      this.#watched.delete(head.id);
      const item = this.#items.get(head.id)!;
      if (item.state !== "claimed") continue;
      if (item.expiresAtMs! < nowMs) found.push(item);
      else this.#watchClaim(item);
    }
  }

  /** Puts an expired claim back, whose record could not be replaced. */
  offerExpired({ id, seq }: Pick<Item, "id" | "seq">): void {
    const item = this.#items.get(id);
    if (item?.seq === seq && item.state === "claimed") this.#watchClaim(item);
  }

  settledAfter(cursor: number, limit: number): Item[] {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ends[middle]!.seq <= cursor) low = middle + 1;
      else high = middle;
    }
    const found: Item[] = [];
    for (let i = low; i < this.#ends.length && found.length < limit; i++) {
      const { seq, id } = this.#ends[i]!;
      const item = this.#items.get(id)!;
      if (item.seq === seq) found.push(item);
    }
    return found;
  }

  #watchClaim({ id, place, seq, expiresAtMs }: Item): void {
    const dueMs = expiresAtMs!;
    if ((this.#watched.get(id) ?? Number.POSITIVE_INFINITY) <= dueMs) return;
    this.#watched.set(id, dueMs);
    this.#claimed.push({ id, dueMs, place, seq });
  }
}
