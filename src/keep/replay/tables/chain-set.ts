/** The set of chains of a store: pairs of a rollout's content and a stream, in about 40 bytes each. */
import { DigestTable } from "../../../base/index.ts";

const KEY_BYTES = 32;

export class ChainSet {
  readonly #chains = new DigestTable();

  /** False if the chain is already in the set. `content` begins at `offset`. */
  add(content: Uint8Array, stream: number, offset = 0): boolean {
    const key = Uint8Array.from(content.subarray(offset, offset + KEY_BYTES));
    // XOR the stream number into the last word, which is uniform: pairs stay as distinct as digests.
    const words = new DataView(key.buffer);
    words.setUint32(KEY_BYTES - 4, words.getUint32(KEY_BYTES - 4) ^ stream);
    const { size } = this.#chains;
    return this.#chains.addBytes(key) === size;
  }
}
