/** Fast random words for resampling: xoshiro128++ (Blackman and Vigna, 2021), seeded from an Rng.
 *  Only 32-bit adds, shifts and xors: the same words on every engine. */
import type { Rng } from "../../../base/index.ts";

export class RandomWords {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(rng: Rng) {
    this.#a = rng.u32() | 0;
    this.#b = rng.u32() | 0;
    this.#c = rng.u32() | 0;
    // The all-zero state is a fixed point: a set bit avoids it.
    this.#d = rng.u32() | 1;
  }

  /** Fills the array with uniform words. */
  fill(words: Int32Array): void {
    let a = this.#a;
    let b = this.#b;
    let c = this.#c;
    let d = this.#d;
    for (let i = 0; i < words.length; i++) {
      const s = (a + d) | 0;
      words[i] = (((s << 7) | (s >>> 25)) + a) | 0;
      const t = b << 9;
      c ^= a;
      d ^= b;
      b ^= c;
      a ^= d;
      c ^= t;
      d = (d << 11) | (d >>> 21);
    }
    this.#a = a;
    this.#b = b;
    this.#c = c;
    this.#d = d;
  }
}
