/** Sparse vectors of many rows in three columns (compressed rows), for the loops of the trainers. */
import type { SparseVector } from "../../policy/index.ts";

export interface SparseRows {
  /** Row r holds the entries start[r] … start[r+1]. */
  readonly start: Int32Array;
  readonly indices: Int32Array;
  readonly values: Float64Array;
  /** Length of a full row. */
  readonly size: number;
}

/** Copies each vector at once, because a reader may reuse its own. `entries`: an upper bound on their number, if known.
 *  Without it the columns grow, and for a while take up to three times their length. */
export function gatherRows<T>(
  items: readonly T[],
  size: number,
  vectorOf: (item: T) => SparseVector,
  entries = 1024,
): SparseRows {
  const start = new Int32Array(items.length + 1);
  let indices = new Int32Array(entries);
  let values = new Float64Array(entries);
  let used = 0;
  items.forEach((item, r) => {
    const vector = vectorOf(item);
    if (used + vector.count > indices.length) {
      const room = Math.max(2 * indices.length, used + vector.count);
      indices = widen(indices, new Int32Array(room));
      values = widen(values, new Float64Array(room));
    }
    indices.set(vector.indices.subarray(0, vector.count), used);
    values.set(vector.values.subarray(0, vector.count), used);
    used += vector.count;
    start[r + 1] = used;
  });
  return { start, indices: indices.subarray(0, used), values: values.subarray(0, used), size };
}

/** The picked rows under their own numbers; all other rows become empty. */
export function pickRows({ start, indices, values, size }: SparseRows, picked: Int32Array): SparseRows {
  const kept = new Int32Array(start.length);
  for (const r of picked) kept[r + 1] = start[r + 1]! - start[r]!;
  for (let r = 1; r < kept.length; r++) kept[r] = kept[r]! + kept[r - 1]!;
  const used = kept.at(-1)!;
  const made = { indices: new Int32Array(used), values: new Float64Array(used) };
  for (const r of picked) {
    made.indices.set(indices.subarray(start[r]!, start[r + 1]!), kept[r]!);
    made.values.set(values.subarray(start[r]!, start[r + 1]!), kept[r]!);
  }
  return { start: kept, ...made, size };
}

/** The same rows with every entry multiplied by the factor of its place. Places with factor 0 are left out. */
export function scaleRows(rows: SparseRows, factors: Float64Array): SparseRows {
  const start = new Int32Array(rows.start.length);
  for (let r = 1; r < start.length; r++) {
    let kept = start[r - 1]!;
    for (let e = rows.start[r - 1]!; e < rows.start[r]!; e++) if (factors[rows.indices[e]!] !== 0) kept++;
    start[r] = kept;
  }
  const indices = new Int32Array(start.at(-1)!);
  const values = new Float64Array(start.at(-1)!);
  let at = 0;
  for (let e = 0; e < rows.indices.length; e++) {
    const factor = factors[rows.indices[e]!]!;
    if (factor === 0) continue;
    indices[at] = rows.indices[e]!;
    values[at++] = factor * rows.values[e]!;
  }
  return { start, indices, values, size: rows.size };
}

/** The same rows with only the columns that occur, in order; `columns` lists them. Place 0 stays first. */
export function compactRows(rows: SparseRows): { rows: SparseRows; columns: Int32Array } {
  const places = new Int32Array(rows.size);
  places[0] = 1;
  for (let e = 0; e < rows.indices.length; e++) places[rows.indices[e]!] = 1;
  const columns: number[] = [];
  for (let column = 0; column < rows.size; column++) {
    if (places[column] === 0) continue;
    places[column] = columns.length;
    columns.push(column);
  }
  const indices = rows.indices.map((column) => places[column]!);
  return { rows: { ...rows, indices, size: columns.length }, columns: Int32Array.from(columns) };
}

function widen<T extends Int32Array | Float64Array>(old: T, wider: T): T {
  wider.set(old as never);
  return wider;
}
