/** digest -> place, compactly: about 55 bytes a blob, whatever their number.
 *  In: digests with places. Out: the place of a digest. Keeps the latest place of each digest; nothing is
 *  ever removed: `clear` and build it again. Open addressing over typed arrays; entries lie in chunks, so
 *  growth copies the slot table only. */
import { type Digest, digestToBytes } from "../base/digest.ts";

export interface Place {
  /** Number of the file in the caller's table. */
  readonly file: number;
  /** Where the entry begins; a multiple of 8. */
  readonly offset: number;
  /** Its length with header and padding. */
  readonly bytes: number;
  /** True if the entry stands for a blob in a file of its own. */
  readonly large: boolean;
}

const CHUNK = 1 << 12;
const WORDS = 11; // digest 8, file, offset / 8, bytes / 8 with LARGE_BIT
const LARGE_BIT = 2 ** 31;

export class BlobIndex {
  #chunks: Uint32Array[] = [];
  #slots = new Uint32Array(1 << 10);
  #size = 0;
  readonly #key = new Uint32Array(8);
  readonly #keyBytes = Buffer.from(this.#key.buffer);

  get size(): number {
    return this.#size;
  }

  /** What it takes in memory. */
  get byteLength(): number {
    return this.#slots.byteLength + this.#chunks.length * CHUNK * WORDS * 4;
  }

  set(digest: Digest, place: Place): void {
    this.#keyBytes.set(digestToBytes(digest));
    const slot = this.#findSlot();
    let entry = this.#slots[slot]! - 1;
    if (entry < 0) {
      entry = this.#size++;
      if (entry % CHUNK === 0) this.#chunks.push(new Uint32Array(CHUNK * WORDS));
      this.#chunk(entry).set(this.#key, (entry % CHUNK) * WORDS);
      this.#slots[slot] = this.#size;
    }
    const chunk = this.#chunk(entry);
    const at = (entry % CHUNK) * WORDS + 8;
    chunk[at] = place.file;
    chunk[at + 1] = place.offset / 8;
    chunk[at + 2] = place.bytes / 8 + (place.large ? LARGE_BIT : 0);
    if (this.#size > this.#slots.length * 0.75) this.#grow();
  }

  get(digest: Digest): Place | undefined {
    this.#keyBytes.set(digestToBytes(digest));
    const entry = this.#slots[this.#findSlot()]! - 1;
    if (entry < 0) return undefined;
    const chunk = this.#chunk(entry);
    const at = (entry % CHUNK) * WORDS + 8;
    const length = chunk[at + 2]!;
    const large = length >= LARGE_BIT;
    return {
      file: chunk[at]!,
      offset: chunk[at + 1]! * 8,
      bytes: (large ? length - LARGE_BIT : length) * 8,
      large,
    };
  }

  has(digest: Digest): boolean {
    this.#keyBytes.set(digestToBytes(digest));
    return this.#slots[this.#findSlot()] !== 0;
  }

  clear(): void {
    this.#chunks = [];
    this.#slots = new Uint32Array(1 << 10);
    this.#size = 0;
  }

  /** The slot that holds the key, or the free one where it would go. Digests are uniform: no hashing needed. */
  #findSlot(): number {
    const mask = this.#slots.length - 1;
    let slot = this.#key[0]! & mask;
    for (;;) {
      const entry = this.#slots[slot]! - 1;
      if (entry < 0 || this.#matches(entry)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #matches(entry: number): boolean {
    const chunk = this.#chunk(entry);
    const at = (entry % CHUNK) * WORDS;
    for (let i = 0; i < 8; i++) if (chunk[at + i] !== this.#key[i]) return false;
    return true;
  }

  #grow(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let entry = 0; entry < this.#size; entry++) {
      let slot = this.#chunk(entry)[(entry % CHUNK) * WORDS]! & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry + 1;
    }
    this.#slots = slots;
  }

  #chunk(entry: number): Uint32Array {
    return this.#chunks[Math.floor(entry / CHUNK)]!;
  }
}
