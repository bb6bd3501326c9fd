/** Finds the rows with equal vectors. A log repeats prompts, so results that depend only on the vector are computed
 *  once. In: sparse rows. Out: the first row of each kind. Compares values, not hashes. */
export interface VectorRows {
  /** Row r holds the entries start[r] … start[r+1]. */
  readonly start: Int32Array;
  readonly indices: Int32Array;
  readonly values: Float64Array;
}

interface DistinctRows {
  /** The kind of each row: rows with equal vectors have the same kind. */
  readonly kind: Int32Array;
  /** The first row of each kind, ascending. */
  readonly first: Int32Array;
}

/** `same` may separate rows whose vectors are equal. */
export function distinctRows(
  rows: VectorRows,
  same: (row: number, other: number) => boolean = () => true,
): DistinctRows {
  const kind = new Int32Array(rows.start.length - 1);
  const first: number[] = [];
  const byHash = new Map<number, number[]>();
  const words = new Int32Array(rows.values.buffer, rows.values.byteOffset, 2 * rows.values.length);
  for (let r = 0; r < kind.length; r++) {
    const hash = hashOf(rows, words, r);
    const kinds = byHash.get(hash);
    let found = kinds?.find((k) => equalRows(rows, first[k]!, r) && same(first[k]!, r));
    if (found === undefined) {
      found = first.length;
      first.push(r);
      if (kinds === undefined) byHash.set(hash, [found]);
      else kinds.push(found);
    }
    kind[r] = found;
  }
  return { kind, first: Int32Array.from(first) };
}

/** `words`: the values as pairs of 32 bits. They enter the hash because purely numeric rows have equal indices. */
function hashOf({ start, indices }: VectorRows, words: Int32Array, r: number): number {
  let hash = start[r + 1]! - start[r]!;
  for (let e = start[r]!; e < start[r + 1]!; e++) {
    hash = Math.imul(hash, 31) + indices[e]!;
    hash = Math.imul(hash ^ words[2 * e]!, 0x9e3779b1);
    hash = Math.imul((hash ^ (hash >>> 15)) + words[2 * e + 1]!, 0x85ebca6b);
    hash ^= hash >>> 13;
  }
  return hash | 0;
}

function equalRows({ start, indices, values }: VectorRows, a: number, b: number): boolean {
  const count = start[a + 1]! - start[a]!;
  if (start[b + 1]! - start[b]! !== count) return false;
  for (let e = 0; e < count; e++)
    if (indices[start[a]! + e] !== indices[start[b]! + e] || values[start[a]! + e] !== values[start[b]! + e])
      return false;
  return true;
}
