/** What one process knows of a queue on a stream: the newest record of every item, and who is ready, expired or ended.
 *  In: records with their stream sequences, in any order. Out: answers from memory. A newer sequence replaces an older
 *  one, so hearing of a record twice changes nothing. Does no I/O and knows no rules: `item-record.ts` has those. */
import type { QueueCounts } from "./queue.ts";
import { DueHeap } from "./due-heap.ts";
import type { StreamItem } from "./nats/item-message.ts";

export interface ViewedItem extends StreamItem {
  readonly id: string;
  /** Where the stream holds this record; a replacement must name it. */
  readonly seq: number;
}

export class QueueView {
  readonly #items = new Map<string, ViewedItem>();
  readonly #ready = new Map<string, DueHeap>();
  readonly #claimed = new DueHeap();
  /** The earliest entry of each item in that heap. A heartbeat adds none: the entry is moved when its time comes, so a
   *  process that never claims does not collect one for every heartbeat of the queue. */
  readonly #watched = new Map<string, number>();
  /** Ends in the order of the stream. An entry counts while the item still has that sequence. */
  readonly #ends: { seq: number; id: string }[] = [];
  readonly #counts: QueueCounts = { waiting: 0, claimed: 0, done: 0, dead: 0 };

  get(id: string): ViewedItem | undefined {
    return this.#items.get(id);
  }

  counts(): QueueCounts {
    return { ...this.#counts };
  }

  /** Whether this was news. */
  apply(item: ViewedItem): boolean {
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
  deliver(item: ViewedItem): boolean {
    const isNews = this.apply(item);
    if ((item.state === "done" || item.state === "dead") && this.#items.get(item.id)?.seq === item.seq)
      this.#ends.push({ seq: item.seq, id: item.id });
    return isNews;
  }

  /** Puts an item that `take` gave back into its line, if it still waits. */
  offer({ id, seq }: Pick<ViewedItem, "id" | "seq">): void {
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
  take(lane: string, nowMs: number, limit: number): ViewedItem[] {
    const heap = this.#ready.get(lane);
    const found: ViewedItem[] = [];
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
  takeExpired(nowMs: number): ViewedItem[] {
    const found: ViewedItem[] = [];
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
  offerExpired({ id, seq }: Pick<ViewedItem, "id" | "seq">): void {
    const item = this.#items.get(id);
    if (item?.seq === seq && item.state === "claimed") this.#watchClaim(item);
  }

  settledAfter(cursor: number, limit: number): ViewedItem[] {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ends[middle]!.seq <= cursor) low = middle + 1;
      else high = middle;
    }
    const found: ViewedItem[] = [];
    for (let i = low; i < this.#ends.length && found.length < limit; i++) {
      const { seq, id } = this.#ends[i]!;
      const item = this.#items.get(id)!;
      if (item.seq === seq) found.push(item);
    }
    return found;
  }

  #watchClaim({ id, place, seq, expiresAtMs }: ViewedItem): void {
    const dueMs = expiresAtMs!;
    if ((this.#watched.get(id) ?? Number.POSITIVE_INFINITY) <= dueMs) return;
    this.#watched.set(id, dueMs);
    this.#claimed.push({ id, dueMs, place, seq });
  }
}
