/** Rows of transitions as dense, standardised minibatches in the kernels' memory.
 *  In: transitions, the rows that set the standardisation. Out: blocks that a network reads.
 *  Constant features become 0. */
import type { Rng } from "../../base/index.ts";
import { type Floats, padded, type TensorSpace } from "../tensor/index.ts";
import type { Transitions } from "./transitions.ts";
import { ready, type Work } from "./work.ts";

/** x ↦ (x − mean) · scale per feature; scale 0 for a constant feature. */
export interface Standardisation {
  readonly mean: Float64Array;
  readonly scale: Float64Array;
}

/** Least deviation of a feature. A smaller one is raised to this value, so that rare words do not dominate. */
const LEAST_DEVIATION = 0.05;

/** Number of rows whose vectors are read at once. */
const BLOCK_ROWS = 1024;

export function* standardise({ states }: Transitions, rows: Int32Array): Work<Standardisation> {
  const moments = new FeatureMoments(states.size, rows.length);
  for (let from = 0; from < rows.length; from += BLOCK_ROWS) {
    const { sparse, places } = yield* ready(states.block(rows.subarray(from, from + BLOCK_ROWS)));
    const { start, indices, values } = sparse;
    for (const row of places)
      for (let e = start[row]!; e < start[row + 1]!; e++) moments.add(indices[e]!, values[e]!);
  }
  return moments.standardisation();
}

/** `each` calls `add` for every nonzero entry of the `rows` rows. */
export function standardiseBy(
  size: number,
  rows: number,
  each: (add: (feature: number, value: number) => void) => void,
): Standardisation {
  const moments = new FeatureMoments(size, rows);
  each((at, value) => moments.add(at, value));
  return moments.standardisation();
}

/** Mean and mean square of every feature. Sums in the order of adding. */
class FeatureMoments {
  readonly #rows: number;
  readonly #mean: Float64Array;
  readonly #square: Float64Array;

  constructor(size: number, rows: number) {
    this.#rows = rows;
    this.#mean = new Float64Array(size);
    this.#square = new Float64Array(size);
  }

  add(at: number, value: number): void {
    this.#mean[at] = this.#mean[at]! + value / this.#rows;
    this.#square[at] = this.#square[at]! + (value * value) / this.#rows;
  }

  standardisation(): Standardisation {
    const mean = this.#mean;
    const scale = this.#square.map((each, i) => {
      const variance = each - mean[i]! * mean[i]!;
      return variance > 1e-12 ? 1 / Math.max(LEAST_DEVIATION, Math.sqrt(variance)) : 0;
    });
    return { mean, scale };
  }
}

export interface DenseBatch {
  readonly input: Floats;
  /** Rows × padded arms. */
  readonly mask: Floats;
  /** The numbers of the batch's rows in the transitions. A negative number is a row of zeros. */
  readonly rows: Int32Array;
  /** Reads the first `count` rows of `rows`. Set `rows` before. */
  load(count: number): Work<void>;
}

export function makeDenseBatch(
  space: TensorSpace,
  { data, by, most }: { data: Transitions; by: Standardisation; most: number },
): DenseBatch {
  const { states, allowed, patterns, arms } = data;
  const [width, wide] = [padded(states.size, 4), padded(arms.length, 8)];
  const lines = padded(most, 4);
  const [input, mask] = [space.floats(lines * width), space.floats(lines * wide)];
  const rows = new Int32Array(lines);
  const origin = new Float32Array(width);
  for (let i = 0; i < states.size; i++) origin[i] = -by.mean[i]! * by.scale[i]!;
  return {
    ...{ input, mask, rows },
    *load(count) {
      const { sparse, places } = yield* ready(states.block(rows.subarray(0, count)));
      const { start, indices, values } = sparse;
      const [x, open] = [space.view(input), space.view(mask)];
      for (let r = 0; r < count; r++) {
        const row = rows[r]!;
        const at = r * width;
        if (row < 0) {
          x.fill(0, at, at + width);
          open.fill(0, r * wide, r * wide + arms.length);
          open[r * wide] = 1;
          continue;
        }
        x.set(origin, at);
        for (let e = start[places[r]!]!; e < start[places[r]! + 1]!; e++) {
          const i = indices[e]!;
          x[at + i] = x[at + i]! + values[e]! * by.scale[i]!;
        }
        open.set(patterns[allowed[row]!]!, r * wide);
      }
    },
  };
}

/** `count` rows drawn with replacement. */
export function drawRows(batch: DenseBatch, from: Int32Array, count: number, rng: Rng): Work<void> {
  for (let r = 0; r < count; r++) batch.rows[r] = from[rng.below(from.length)]!;
  return batch.load(count);
}
