/** A heap of keys by due time, then by place. In: entries. Out: the entry that is due first. Pure data structure. A
 *  key may have several entries; the owner decides at the head which entries are still valid. */
interface DueEntry {
  readonly id: string;
  readonly dueMs: number;
  readonly place: number;
  /** The revision of the item that this entry refers to. */
  readonly seq: number;
}

export class DueHeap {
  readonly #entries: DueEntry[] = [];

  get size(): number {
    return this.#entries.length;
  }

  peek(): DueEntry | undefined {
    return this.#entries[0];
  }

  push(entry: DueEntry): void {
    const entries = this.#entries;
    let at = entries.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(entry, entries[parent]!)) break;
      entries[at] = entries[parent]!;
      at = parent;
    }
    entries[at] = entry;
  }

  pop(): DueEntry | undefined {
    const entries = this.#entries;
    const first = entries[0];
    const last = entries.pop();
    if (first === undefined || last === undefined || entries.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= entries.length) break;
      if (child + 1 < entries.length && isBefore(entries[child + 1]!, entries[child]!)) child++;
      if (!isBefore(entries[child]!, last)) break;
      entries[at] = entries[child]!;
      at = child;
    }
    entries[at] = last;
    return first;
  }
}

function isBefore(a: DueEntry, b: DueEntry): boolean {
  return a.dueMs !== b.dueMs ? a.dueMs < b.dueMs : a.place < b.place;
}
