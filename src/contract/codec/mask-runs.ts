/** Finds the runs of ones in a mask. In: a u8 column. Out: the number of ones, and the edges of their runs. Pure. */

export interface MaskRuns {
  /** Number of ones; -1 if the column holds a value other than 0 and 1. */
  ones: number;
  /** Starts and ends of the runs of ones, alternating. Undefined if there is no run, or more than MOST_RUNS. */
  edges: readonly number[] | undefined;
}

/** A mask has about one run per turn. A mask with more runs than this is scanned again when needed. */
const MOST_RUNS = 64;
const FOUR_ONES = 0x01010101;

/** Compares four bytes at a time, because most of them equal the byte before. */
export function scanMask(bytes: Uint8Array): MaskRuns {
  const whole = bytes.byteOffset % 4 === 0 ? bytes.length >> 2 : 0;
  const words = new Uint32Array(bytes.buffer, whole === 0 ? 0 : bytes.byteOffset, whole);
  const edges: number[] = [];
  let ones = 0;
  let inside = 0;
  for (let at = 0; at < bytes.length; ) {
    let word = at >> 2;
    const same = inside === 1 ? FOUR_ONES : 0;
    while (word < whole && words[word] === same) word++;
    at = word < whole ? 4 * word : Math.max(at, 4 * whole);
    for (const end = word < whole ? at + 4 : bytes.length; at < end; at++) {
      const value = bytes[at]!;
      if (value === inside) continue;
      if (value > 1) return { ones: -1, edges: undefined };
      inside = value;
      // Number of ones = sum of the ends − sum of the starts.
      ones += value === 1 ? -at : at;
      if (edges.length <= 2 * MOST_RUNS) edges.push(at);
    }
  }
  if (inside === 1) {
    ones += bytes.length;
    edges.push(bytes.length);
  }
  return { ones, edges: edges.length === 0 || edges.length > 2 * MOST_RUNS ? undefined : edges };
}

/** Number of ones inside the given parts, which must not overlap. */
export function onesInside(
  parts: readonly { readonly start: number; readonly end: number }[],
  edges: ArrayLike<number>,
): number {
  let inside = 0;
  for (const { start, end } of parts)
    for (let i = 0; i < edges.length; i += 2)
      inside += Math.max(0, Math.min(end, edges[i + 1]!) - Math.max(start, edges[i]!));
  return inside;
}
