/** Digests to numbers in 40 to 80 bytes a key: what tells rows apart across a store without holding the rows.
 *  Keys are the first 128 bits of a digest; two different digests never meet in practice. */

const WORDS = 4;

export class KeyMap {
  #size = 0;
  #capacity = 1 << 10;
  #keys = new Uint32Array(this.#capacity * WORDS);
  /** −1: the slot is free. */
  #values = new Int32Array(this.#capacity).fill(-1);
  readonly #key = new Uint32Array(WORDS);

  get size(): number {
    return this.#size;
  }

  /** The value of a 32-byte key (`bytes` at `offset`), set to `value` (≥ 0) if it had none; undefined then. */
  getOrSet(bytes: Uint8Array, value: number, offset = 0): number | undefined {
    readKey(bytes, offset, this.#key);
    return this.#getOrSet(value);
  }

  get(bytes: Uint8Array, offset = 0): number | undefined {
    readKey(bytes, offset, this.#key);
    const found = this.#values[this.#slot()]!;
    return found < 0 ? undefined : found;
  }

  #getOrSet(value: number): number | undefined {
    if (this.#size * 2 >= this.#capacity) this.#grow();
    const slot = this.#slot();
    const found = this.#values[slot]!;
    if (found >= 0) return found;
    this.#keys.set(this.#key, slot * WORDS);
    this.#values[slot] = value;
    this.#size++;
    return undefined;
  }

  /** The slot of the key, or the free one where it belongs. Digests are uniform: their first word is the hash. */
  #slot(): number {
    const [a, b, c, d] = this.#key;
    const mask = this.#capacity - 1;
    let slot = a! & mask;
    while (this.#values[slot]! >= 0) {
      const at = slot * WORDS;
      const keys = this.#keys;
      if (keys[at] === a && keys[at + 1] === b && keys[at + 2] === c && keys[at + 3] === d) break;
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values];
    this.#capacity *= 2;
    this.#keys = new Uint32Array(this.#capacity * WORDS);
    this.#values = new Int32Array(this.#capacity).fill(-1);
    const held = Uint32Array.from(this.#key);
    for (let i = 0; i < values.length; i++) {
      if (values[i]! < 0) continue;
      this.#key.set(keys.subarray(i * WORDS, (i + 1) * WORDS));
      const slot = this.#slot();
      this.#keys.set(this.#key, slot * WORDS);
      this.#values[slot] = values[i]!;
    }
    this.#key.set(held);
  }
}

/** The bytes of a digest with a number mixed in: a key for pairs such as (content, stream). */
export function pairKey(bytes: Uint8Array, number: number, offset = 0): Uint8Array {
  const key = Uint8Array.from(bytes.subarray(offset, offset + 16));
  // The number goes into the last word, which is uniform: pairs stay as far apart as digests.
  new DataView(key.buffer).setUint32(12, new DataView(key.buffer).getUint32(12) ^ number);
  return key;
}

function readKey(bytes: Uint8Array, offset: number, key: Uint32Array): void {
  for (let word = 0; word < WORDS; word++) {
    const at = offset + word * 4;
    key[word] = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  }
}
