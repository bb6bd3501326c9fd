/** Rarity of each word bucket in the training rows: ln((1 + rows) / (1 + rows with the bucket)). */
import { log } from "../../base/index.ts";
import type { SparseRows } from "./sparse-rows.ts";

/** One factor per bucket. `at`: the first place of the words. */
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
