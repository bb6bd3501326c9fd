/** The items of a queue of one process, in memory. A SQLite statement would take longer than all other work of the
 *  queue. In: records. Out: records, as from the table of sqlite-items.ts. Does not know the rules of transitions. */
import type { ItemRecord } from "./item-record.ts";
import type { QueueCounts } from "./queue.ts";
import { type PlacedItem, QueueView } from "./queue-view.ts";
import type { Items, StoredItem } from "./sqlite-items.ts";

type MemoryItem = StoredItem & PlacedItem;

export class MemoryItems implements Items {
  readonly #view = new QueueView<MemoryItem>();
  /** Number of writes so far. It numbers the records, and so the ended items. */
  writes = 0;

  find(id: string): MemoryItem | undefined {
    return this.#view.get(id);
  }

  payloadOf(id: string): string | undefined {
    return this.#view.get(id)?.payload;
  }

  insert(id: string, payload: string, item: ItemRecord): void {
    const seq = ++this.writes;
    this.#view.deliver({ ...item, id, payload, seq, place: seq, settled: null });
  }

  replace({ id }: StoredItem, next: ItemRecord): void {
    const { payload, place } = this.#view.get(id)!;
    const seq = ++this.writes;
    const settled = next.state === "done" || next.state === "dead" ? seq : null;
    this.#view.deliver({ ...next, id, payload, seq, place, settled });
  }

  ready(lane: string, nowMs: number, limit: number): MemoryItem[] {
    return this.#view.take(lane, nowMs, limit);
  }

  expired(nowMs: number): MemoryItem[] {
    return this.#view.takeExpired(nowMs);
  }

  settledAfter(cursor: number, limit: number): MemoryItem[] {
    return this.#view.settledAfter(cursor, limit);
  }

  counts(): QueueCounts {
    return this.#view.counts();
  }
}
