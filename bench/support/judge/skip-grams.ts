/** Skip-grams of an ordered list of named features, hashed: each feature, and each pair at most `skips` apart.
 *  In: names and values in the order of the text. Out: a sparse vector with a bias in place 0. The vector is scratch
 *  space, valid until the next call. Features that share a place add up. */
import { RollbookError } from "../../../src/base/index.ts";
import { hashText, mix, type SparseVector } from "../../../src/policy/index.ts";

export interface SkipGramOptions {
  /** Number of places: a power of two. */
  readonly buckets: number;
  /** The most features between the two features of a pair. */
  readonly skips: number;
}

export function makeSkipGrams({ buckets, skips }: SkipGramOptions) {
  if (buckets < 2 || (buckets & (buckets - 1)) !== 0)
    throw new RollbookError("bad-options", { buckets }, `${buckets} buckets: give a power of two.`);
  let indices = new Int32Array(1024);
  let values = new Float64Array(1024);
  return (features: readonly (readonly [name: string, value: number])[]): SparseVector => {
    const room = 1 + features.length * (2 + skips);
    if (room > indices.length) {
      indices = new Int32Array(2 * room);
      values = new Float64Array(2 * room);
    }
    let count = 0;
    const push = (hash: number, value: number) => {
      indices[count] = 1 + ((mix(hash) >>> 0) % (buckets - 1));
      values[count++] = value;
    };
    indices[count] = 0;
    values[count++] = 1;
    const hashes = features.map(([name]) => hashText(name));
    for (let i = 0; i < features.length; i++) {
      push(hashes[i]!, features[i]![1]);
      for (let j = i + 1; j <= i + 1 + skips && j < features.length; j++)
        push(Math.imul(hashes[i]!, 31) ^ hashes[j]! ^ 0x5bd1e995, features[i]![1] * features[j]![1]);
    }
    return { indices, values, count };
  };
}
