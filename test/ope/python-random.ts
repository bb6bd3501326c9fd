/** CPython's `random.Random(seed)`: MT19937 (Matsumoto and Nishimura, 1998), to reproduce a Python generator's rows to
 *  the bit. Implements only random(), uniform(), and an index as choice() draws it. */
export class PythonRandom {
  readonly #state = new Uint32Array(624);
  #at = 624;

  /** Seeds below 2^32 only. */
  constructor(seed: number) {
    const s = this.#state;
    s[0] = 19650218;
    for (let i = 1; i < 624; i++) s[i] = Math.imul(1812433253, s[i - 1]! ^ (s[i - 1]! >>> 30)) + i;
    let i = 1;
    for (let k = 0; k < 624; k++) {
      s[i] = (s[i]! ^ Math.imul(s[i - 1]! ^ (s[i - 1]! >>> 30), 1664525)) + seed;
      if (++i >= 624) {
        s[0] = s[623]!;
        i = 1;
      }
    }
    for (let k = 0; k < 623; k++) {
      s[i] = (s[i]! ^ Math.imul(s[i - 1]! ^ (s[i - 1]! >>> 30), 1566083941)) - i;
      if (++i >= 624) {
        s[0] = s[623]!;
        i = 1;
      }
    }
    s[0] = 0x80000000;
  }

  random(): number {
    const high = this.#word() >>> 5;
    return (high * 67108864 + (this.#word() >>> 6)) / 9007199254740992;
  }

  uniform(low: number, high: number): number {
    return low + (high - low) * this.random();
  }

  below(bound: number): number {
    const bits = 32 - Math.clz32(bound);
    for (;;) {
      const draw = this.#word() >>> (32 - bits);
      if (draw < bound) return draw;
    }
  }

  #word(): number {
    if (this.#at >= 624) this.#twist();
    let y = this.#state[this.#at++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  #twist(): void {
    const s = this.#state;
    for (let i = 0; i < 624; i++) {
      const y = (s[i]! & 0x80000000) | (s[(i + 1) % 624]! & 0x7fffffff);
      s[i] = s[(i + 397) % 624]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
    }
    this.#at = 0;
  }
}
