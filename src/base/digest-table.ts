/** Numbers digests in the order in which they first come, compactly: about 40 bytes each, and no strings.
 *  In: digests. Out: their numbers, 0 and up. Nothing is ever removed: `clear` and begin again.
 *  Open addressing over typed arrays; keys lie in chunks, so growth copies the slot table only. */
import { type Digest, writeHex } from "./digest.ts";

const CHUNK = 1 << 12;
const WORDS = 8;
/** Of `sha256:`, before the hexadecimals. */
const PREFIX = 7;

export class DigestTable {
  #chunks: Uint32Array[] = [];
  #slots = new Uint32Array(1 << 10);
  #size = 0;
  readonly #key = new Uint32Array(WORDS);
  readonly #keyBytes = new Uint8Array(this.#key.buffer);

  get size(): number {
    return this.#size;
  }

  /** What it takes in memory. */
  get byteLength(): number {
    return this.#slots.byteLength + this.#chunks.length * CHUNK * WORDS * 4;
  }

  /** The number of `digest`, a new one if it has none: it is new if the number equals the size before. */
  add(digest: Digest): number {
    return this.addHex(digest, PREFIX);
  }

  /** The same for the hexadecimals of a digest alone, as they come out of hashing. */
  addHex(hex: string, from = 0): number {
    writeHex(hex, { from, target: this.#keyBytes, at: 0 });
    return this.#add();
  }

  /** The same for its 32 bytes. */
  addBytes(bytes: Uint8Array): number {
    this.#keyBytes.set(bytes);
    return this.#add();
  }

  /** The number of `digest`, or -1. */
  find(digest: Digest): number {
    writeHex(digest, { from: PREFIX, target: this.#keyBytes, at: 0 });
    return this.#slots[this.#findSlot()]! - 1;
  }

  clear(): void {
    this.#chunks = [];
    this.#slots = new Uint32Array(1 << 10);
    this.#size = 0;
  }

  #add(): number {
    const slot = this.#findSlot();
    const known = this.#slots[slot]! - 1;
    if (known >= 0) return known;
    const number = this.#size++;
    if (number % CHUNK === 0) this.#chunks.push(new Uint32Array(CHUNK * WORDS));
    const chunk = this.#chunks[Math.floor(number / CHUNK)]!;
    const at = (number % CHUNK) * WORDS;
    for (let i = 0; i < WORDS; i++) chunk[at + i] = this.#key[i]!;
    this.#slots[slot] = this.#size;
    if (this.#size > this.#slots.length * 0.75) this.#grow();
    return number;
  }

  /** The slot that holds the key, or the free one where it would go. Digests are uniform: no hashing needed. */
  #findSlot(): number {
    const mask = this.#slots.length - 1;
    let slot = this.#key[0]! & mask;
    for (;;) {
      const number = this.#slots[slot]! - 1;
      if (number < 0 || this.#matches(number)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #matches(number: number): boolean {
    const chunk = this.#chunks[Math.floor(number / CHUNK)]!;
    const at = (number % CHUNK) * WORDS;
    for (let i = 0; i < WORDS; i++) if (chunk[at + i] !== this.#key[i]) return false;
    return true;
  }

  #grow(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let number = 0; number < this.#size; number++) {
      let slot = this.#chunks[Math.floor(number / CHUNK)]![(number % CHUNK) * WORDS]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number + 1;
    }
    this.#slots = slots;
  }
}
