/** Selects sparse rows, and rescales their words, for nested folds. */
import { gatherRows, type SparseRows } from "../../../src/learn/rows/index.ts";

export function pickRows(rows: SparseRows, picked: readonly number[]): SparseRows {
  return gatherRows(picked, rows.size, (r) => {
    const [from, to] = [rows.start[r]!, rows.start[r + 1]!];
    return {
      indices: rows.indices.subarray(from, to),
      values: rows.values.subarray(from, to),
      count: to - from,
    };
  });
}

/** The rows as a reader with this scale would read them: scaled, then normalised to length 1. */
export function rescaleWords(rows: SparseRows, scale: Float64Array, at: number): SparseRows {
  const values = Float64Array.from(rows.values);
  for (let r = 0; r + 1 < rows.start.length; r++) {
    const [from, to] = [rows.start[r]!, rows.start[r + 1]!];
    let sum = 0;
    for (let e = from; e < to; e++) {
      const bucket = rows.indices[e]! - at;
      if (bucket < 0) continue;
      values[e] = values[e]! * scale[bucket]!;
      sum += values[e]! * values[e]!;
    }
    const factor = sum === 0 ? 0 : 1 / Math.sqrt(sum);
    for (let e = from; e < to; e++) if (rows.indices[e]! >= at) values[e] = values[e]! * factor;
  }
  return { ...rows, values };
}
