/** Where the ones of a mask lie. In: a u8 column. Out: how many ones, and the edges of their runs. Pure. */

export interface MaskRuns {
  /** How many ones there are; -1 if the column holds anything but 0 and 1. */
  ones: number;
  /** Where the runs of ones begin and end, in turns; undefined if there is none, or more than are worth keeping. */
  edges: readonly number[] | undefined;
}

/** A mask has about one run a turn; one with more than this is read again where it is needed. */
const MOST_RUNS = 64;
const FOUR_ONES = 0x01010101;

/** Four bytes at a time: almost all of them say what the one before said. */
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
      // The sum of all ends less the sum of all beginnings.
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

/** How many of the ones lie in the given parts, which do not overlap. */
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
