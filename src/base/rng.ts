/** Seeded, splittable, counter-based randomness: Threefry-2x32 with 20 rounds (Salmon et al., SC 2011). Uses only
 *  32-bit adds, rotations and xors, so the stream is the same on every engine and machine. */
import { hash } from "node:crypto";
import { RollbookError } from "./errors.ts";

export interface Rng {
  /** An integer in [0, 2^32). */
  u32(): number;
  /** A double in [0, 1) with 53 random bits. */
  float(): number;
  /** An integer in [0, bound), without modulo bias. */
  below(bound: number): number;
  /** Permutes in place (Fisher–Yates) and returns the same array. */
  shuffle<T>(items: T[]): T[];
  /** A child whose stream depends only on this seed and `key`, not on the draws from the parent. */
  split(key: string | number): Rng;
  /** An unsigned 64-bit seed for a generator outside this module. */
  u64(): bigint;
}

export function rngFrom(seed: bigint | number): Rng {
  // A number past 2^53 has already lost digits, and a fraction is not a seed.
  const wide = typeof seed === "bigint" ? seed : Number.isSafeInteger(seed) ? BigInt(seed) : -1n;
  if (wide < 0n || wide >= 1n << 64n) {
    throw new RollbookError(
      "bad-seed",
      { seed: String(seed) },
      `seed ${seed} is not a whole number in 0 … 2^64−1 (past 2^53 only as a bigint). Choose another seed.`,
    );
  }
  return new Threefry(Number(wide & 0xffffffffn), Number(wide >> 32n));
}

/** Computes one block. Key and counter have two 32-bit words each. Exported for the published known-answer vectors. */
export function threefry2x32(
  key: readonly [number, number],
  counter: readonly [number, number],
): [number, number] {
  block(key[0], key[1], counter[0], counter[1]);
  return [OUT[0]!, OUT[1]!];
}

/** Output of `block`. A shared buffer avoids an allocation, because routers draw at every request. */
const OUT = new Uint32Array(2);

/** Rotations are constants in the code, not a table: a block takes a third of the time. */
function block(key0: number, key1: number, counter0: number, counter1: number): void {
  let k0 = key0 | 0;
  let k1 = key1 | 0;
  let k2 = 0x1bd11bda ^ k0 ^ k1;
  let x = (counter0 + k0) | 0;
  let y = (counter1 + k1) | 0;
  for (let group = 1; group <= 5; group++) {
    if (group % 2 === 1) {
      x = (x + y) | 0;
      y = ((y << 13) | (y >>> 19)) ^ x;
      x = (x + y) | 0;
      y = ((y << 15) | (y >>> 17)) ^ x;
      x = (x + y) | 0;
      y = ((y << 26) | (y >>> 6)) ^ x;
      x = (x + y) | 0;
      y = ((y << 6) | (y >>> 26)) ^ x;
    } else {
      x = (x + y) | 0;
      y = ((y << 17) | (y >>> 15)) ^ x;
      x = (x + y) | 0;
      y = ((y << 29) | (y >>> 3)) ^ x;
      x = (x + y) | 0;
      y = ((y << 16) | (y >>> 16)) ^ x;
      x = (x + y) | 0;
      y = ((y << 24) | (y >>> 8)) ^ x;
    }
    // Rotate the words of the key.
    const first = k0;
    k0 = k1;
    k1 = k2;
    k2 = first;
    x = (x + k0) | 0;
    y = (y + k1 + group) | 0;
  }
  OUT[0] = x;
  OUT[1] = y;
}

/** Splits use counters with the top bit set; draws never do. A split and a draw can therefore never coincide. */
const SPLIT_BIT = 0x80000000;

class Threefry implements Rng {
  readonly #low: number;
  readonly #high: number;
  #block = 0;
  #spare = -1;

  constructor(low: number, high: number) {
    this.#low = low;
    this.#high = high;
  }

  u32(): number {
    if (this.#spare >= 0) {
      const word = this.#spare;
      this.#spare = -1;
      return word;
    }
    block(this.#low, this.#high, this.#block >>> 0, Math.floor(this.#block / 2 ** 32));
    this.#block++;
    this.#spare = OUT[1]!;
    return OUT[0]!;
  }

  u64(): bigint {
    const low = this.u32();
    return (BigInt(this.u32()) << 32n) | BigInt(low);
  }

  float(): number {
    const high = this.u32() >>> 5;
    return (high * 2 ** 26 + (this.u32() >>> 6)) / 2 ** 53;
  }

  below(bound: number): number {
    if (!Number.isInteger(bound) || bound < 1 || bound > 2 ** 32) {
      throw new RollbookError("bad-bound", { bound }, `bound ${bound} is not an integer in 1 … 2^32.`);
    }
    // Draws in the last, incomplete run of `bound` values would favour small values: draw again.
    const limit = 2 ** 32 - (2 ** 32 % bound);
    let word = this.u32();
    while (word >= limit) word = this.u32();
    return word % bound;
  }

  shuffle<T>(items: T[]): T[] {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const held = items[i]!;
      items[i] = items[j]!;
      items[j] = held;
    }
    return items;
  }

  split(key: string | number): Rng {
    if (typeof key === "number") {
      if (!Number.isSafeInteger(key) || key < 0)
        throw new RollbookError("bad-split", { key }, `split key ${key} is not a whole number ≥ 0.`);
      block(this.#low, this.#high, key >>> 0, (Math.floor(key / 2 ** 32) | SPLIT_BIT) >>> 0);
      return new Threefry(OUT[0]!, OUT[1]!);
    }
    // Names use a second level with one more fixed counter bit, so that a name never collides with a number.
    const word = hash("sha256", key, "binary");
    block(this.#low, this.#high, wordAt(word, 0), (wordAt(word, 4) | SPLIT_BIT | 0x40000000) >>> 0);
    return new Threefry(OUT[0]!, OUT[1]!);
  }
}

/** Hashes a name to a 53-bit number for `split`, for code that draws at every request. Takes a tenth of the time of a
 *  split by name. Two names with the same number draw the same stream, so security must not depend on this hash. Two
 *  lanes of multiply and xor, each mixed into the other by the finaliser of MurmurHash3. */
export function splitKey(name: string): number {
  return new KeyPrefix("").key(name);
}

/** The hashed beginning of names that many calls share. `key(rest)` is `splitKey(beginning + rest)`, without joining
 *  the texts. */
export class KeyPrefix {
  readonly #low: number;
  readonly #high: number;

  constructor(beginning: string) {
    this.#low = absorb(LOW, beginning, 0x85ebca6b);
    this.#high = absorb(HIGH, beginning, 0xc2b2ae35);
  }

  key(rest: string): number {
    let low = absorb(this.#low, rest, 0x85ebca6b);
    let high = absorb(this.#high, rest, 0xc2b2ae35);
    low = Math.imul(low ^ (low >>> 16), 0x85ebca6b) ^ Math.imul(high ^ (high >>> 13), 0xc2b2ae35);
    high = Math.imul(high ^ (high >>> 16), 0x85ebca6b) ^ Math.imul(low ^ (low >>> 13), 0xc2b2ae35);
    return (high & 0x1fffff) * 2 ** 32 + (low >>> 0);
  }
}

const [LOW, HIGH] = [0x9e3779b9, 0x7f4a7c15];

function absorb(lane: number, text: string, factor: number): number {
  let mixed = lane;
  for (let i = 0; i < text.length; i++) mixed = Math.imul(mixed ^ text.charCodeAt(i), factor);
  return mixed;
}

/** Reads four bytes, lowest first, from a binary string. A digest as a binary string takes half the time of a
 *  Buffer. */
function wordAt(bytes: string, at: number): number {
  const [a, b] = [bytes.charCodeAt(at), bytes.charCodeAt(at + 1)];
  return (a | (b << 8) | (bytes.charCodeAt(at + 2) << 16) | (bytes.charCodeAt(at + 3) << 24)) >>> 0;
}
