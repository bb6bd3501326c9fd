/** One process's view of a queue: the newest record of every item, and the ready, expired and ended items. In:
 *  records with their sequences, in any order. Out: answers from memory. A newer sequence replaces an older one, so
 *  a repeated record changes nothing. Does no I/O and knows no rules: `item-record.ts` has the rules. */
import { DueHeap } from "./due-heap.ts";
import type { ItemRecord } from "./item-record.ts";
import type { QueueCounts } from "./queue.ts";

export interface PlacedItem extends ItemRecord {
  readonly id: string;
  /** First sequence of the item. It is the item's place in line and never changes. */
  readonly place: number;
  /** Sequence of this record. A replacement has a greater sequence. */
  readonly seq: number;
}

export class QueueView<Item extends PlacedItem> {
  readonly #items = new Map<string, Item>();
  readonly #ready = new Map<string, DueHeap>();
  readonly #claimed = new DueHeap();
  /** Due time of each item's earliest entry in `#claimed`. A heartbeat adds no entry: the entry is moved when it
   *  falls due. So a process that never claims does not collect an entry for every heartbeat of the queue. */
  readonly #watched = new Map<string, number>();
  /** Ended items in stream order. An entry is valid while its item still has that sequence. */
  readonly #ends: { seq: number; id: string }[] = [];
  readonly #counts: QueueCounts = { waiting: 0, claimed: 0, done: 0, dead: 0 };

  get(id: string): Item | undefined {
    return this.#items.get(id);
  }

  counts(): QueueCounts {
    return { ...this.#counts };
  }

  /** True if the record was newer than the known one. */
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

  /** Records that the stream delivered this record. Only then its place among the ended items is known. */
  deliver(item: Item): boolean {
    const isNews = this.apply(item);
    if ((item.state === "done" || item.state === "dead") && this.#items.get(item.id)?.seq === item.seq)
      this.#ends.push({ seq: item.seq, id: item.id });
    return isNews;
  }

  /** Returns an item from `take` to its line, if it still waits. */
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

  /** Ready items, longest ready first. They leave their line, so a second call does not return them again. */
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

  /** Expired claims. They leave their line. */
  takeExpired(nowMs: number): Item[] {
    const found: Item[] = [];
    for (;;) {
      const head = this.#claimed.peek();
      if (head === undefined || head.dueMs >= nowMs) return found;
      this.#claimed.pop();
      if (this.#watched.get(head.id) !== head.dueMs) continue; // an earlier entry has replaced this entry
      this.#watched.delete(head.id);
      const item = this.#items.get(head.id)!;
      if (item.state !== "claimed") continue;
      if (item.expiresAtMs! < nowMs) found.push(item);
      else this.#watchClaim(item);
    }
  }

  /** Returns an expired claim to its line after its record could not be replaced. */
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
