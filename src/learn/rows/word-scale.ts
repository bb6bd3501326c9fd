/** How rare each word bucket is in the training rows: ln((1 + rows) / (1 + rows that have it)). */
import { log } from "../../base/index.ts";
import type { SparseRows } from "./sparse-rows.ts";

/** One factor per bucket; `at` is where the words begin. */
export function wordScaleOf({ start, indices, size }: SparseRows, at: number): Float64Array {
  const seen = new Float64Array(size - at);
  for (let e = 0; e < indices.length; e++) {
    const bucket = indices[e]! - at;
    if (bucket >= 0) seen[bucket] = seen[bucket]! + 1;
  }
  const rows = start.length - 1;
  for (let bucket = 0; bucket < seen.length; bucket++) seen[bucket] = log((1 + rows) / (1 + seen[bucket]!));
  return seen;
}

/** The rows as a reader with this scale would have read them: scaled, then brought back to length 1. */
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
