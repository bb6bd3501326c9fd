/** The ids of a file, with the line or the count of each: 24 bytes per id of any length.
 *  Identifies ids by 64 bits of SHA-256: among ten million ids, a false match has a probability of 3 in a million. */
import { hash } from "node:crypto";

export class IdTable {
  /** Two words of hash, and a line or a count, per slot. 0: free. */
  #slots = new Uint32Array(3 * 1024);
  #count = 0;

  /** The earlier line of `id`. Undefined if `id` is new. */
  add(id: string, line: number): number | undefined {
    const before = this.#change(id, (known) => known || line);
    return before === 0 ? undefined : before;
  }

  /** Number of times that `id` has been counted, including this time. */
  count(id: string): number {
    return this.#change(id, (known) => known + 1) + 1;
  }

  /** Returns the earlier value. */
  #change(id: string, next: (known: number) => number): number {
    const word = hash("sha256", id, "buffer");
    const [high, low] = [word.readUInt32LE(0), word.readUInt32LE(4)];
    const at = this.#find(high, low);
    const before = this.#slots[at + 2]!;
    this.#slots.set([high, low, next(before)], at);
    if (before === 0 && ++this.#count * 6 > this.#slots.length) this.#grow();
    return before;
  }

  #find(high: number, low: number): number {
    const places = this.#slots.length / 3;
    for (let place = high % places; ; place = (place + 1) % places) {
      const at = 3 * place;
      if (this.#slots[at + 2] === 0 || (this.#slots[at] === high && this.#slots[at + 1] === low)) return at;
    }
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(2 * old.length);
    for (let at = 0; at < old.length; at += 3)
      if (old[at + 2] !== 0) this.#slots.set(old.subarray(at, at + 3), this.#find(old[at]!, old[at + 1]!));
  }
}
