/** Which rows of many are the same vector: a log asks for the same prompts again and again, and what follows from a vector
 *  alone is computed once for all of its rows. In: sparse rows. Out: the first row of each kind. Compares values, not hashes. */
export interface VectorRows {
  /** Row r holds the entries start[r] … start[r+1]. */
  readonly start: Int32Array;
  readonly indices: Int32Array;
  readonly values: Float64Array;
}

interface DistinctRows {
  /** The kind of each row. */
  readonly kind: Int32Array;
  /** The first row of each kind, ascending. */
  readonly first: Int32Array;
}

/** `same` may part rows whose vectors are equal. */
export function distinctRows(
  rows: VectorRows,
  same: (row: number, other: number) => boolean = () => true,
): DistinctRows {
  const kind = new Int32Array(rows.start.length - 1);
  const first: number[] = [];
  const byHash = new Map<number, number[]>();
  for (let r = 0; r < kind.length; r++) {
    const hash = hashOf(rows, r);
    const kinds = byHash.get(hash) ?? [];
    let found = kinds.find((k) => equalRows(rows, first[k]!, r) && same(first[k]!, r));
    if (found === undefined) {
      found = first.length;
      first.push(r);
      byHash.set(hash, [...kinds, found]);
    }
    kind[r] = found;
  }
  return { kind, first: Int32Array.from(first) };
}

function hashOf({ start, indices }: VectorRows, r: number): number {
  let hash = start[r + 1]! - start[r]!;
  for (let e = start[r]!; e < start[r + 1]!; e++) hash = (Math.imul(hash, 31) + indices[e]!) | 0;
  return hash;
}

function equalRows({ start, indices, values }: VectorRows, a: number, b: number): boolean {
  const count = start[a + 1]! - start[a]!;
  if (start[b + 1]! - start[b]! !== count) return false;
  for (let e = 0; e < count; e++)
    if (indices[start[a]! + e] !== indices[start[b]! + e] || values[start[a]! + e] !== values[start[b]! + e])
      return false;
  return true;
}
