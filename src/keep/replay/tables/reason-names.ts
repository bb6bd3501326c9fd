/** Reasons why candidates cannot be chosen, as bits: bit i of a bitset is the i-th name ever used in the store. Names
 *  are appended, never moved or removed, so a bit means the same in every segment. */
import { RollbookError } from "../../../base/index.ts";

const MAX_REASONS = 64;

export class ReasonNames {
  readonly #bits: Map<string, number>;

  constructor(names: Iterable<string> = []) {
    this.#bits = new Map([...names].map((name, bit) => [name, bit]));
  }

  get names(): string[] {
    return [...this.#bits.keys()];
  }

  /** Number of names: a later version extends an earlier one. */
  get version(): number {
    return this.#bits.size;
  }

  bits(reasons: readonly string[]): bigint {
    let bits = 0n;
    for (const reason of reasons) bits |= 1n << BigInt(this.#bit(reason));
    return bits;
  }

  #bit(reason: string): number {
    const known = this.#bits.get(reason);
    if (known !== undefined) return known;
    if (this.#bits.size === MAX_REASONS) {
      throw new RollbookError(
        "too-many-reasons",
        { reason, known: this.names },
        `the reason ${reason} would be number ${MAX_REASONS + 1}; a store names at most ${MAX_REASONS}. Write these rollouts into a store of their own, or use fewer reasons.`,
      );
    }
    this.#bits.set(reason, this.#bits.size);
    return this.#bits.size - 1;
  }
}
