/** Numbers digests in the order of their first appearance, compactly: about 40 bytes each, and no strings.
 *  In: digests. Out: their numbers, from 0. Removes no single digest; `clear` empties the table. Open addressing over
 *  typed arrays. Keys are stored in chunks, so growth copies only the slot table. */
import { type Digest, writeHex } from "./digest.ts";

const CHUNK = 1 << 12;
const WORDS = 8;
/** Length of the `sha256:` prefix. */
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

  /** Memory that the table uses, in bytes. */
  get byteLength(): number {
    return this.#slots.byteLength + this.#chunks.length * CHUNK * WORDS * 4;
  }

  /** Number of `digest`; an unknown digest gets the next number. The digest is new if its number equals the size
   *  before. */
  add(digest: Digest): number {
    return this.addHex(digest, PREFIX);
  }

  /** As `add`, for the hexadecimal digits of a digest alone, as a hash function returns them. */
  addHex(hex: string, from = 0): number {
    writeHex(hex, { from, target: this.#keyBytes, at: 0 });
    return this.#add();
  }

  /** As `add`, for the 32 bytes of a digest. */
  addBytes(bytes: Uint8Array): number {
    this.#keyBytes.set(bytes);
    return this.#add();
  }

  /** Number of `digest`, or -1 if it is not in the table. */
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

  /** Slot that holds the key, or the free slot for it. Digests are uniform, so the key is not hashed again. */
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
