/** Rows of transitions as dense minibatches in the kernels' memory, standardised.
 *  In: transitions, the rows they are standardised by. Out: blocks that a network reads. Constant features become 0. */
import type { Rng } from "../../base/index.ts";
import { type Floats, padded, type TensorSpace } from "../tensor/index.ts";
import type { Transitions } from "./transitions.ts";

/** x ↦ (x − mean) · scale per feature; scale 0 for a feature that never varies. */
export interface Standardisation {
  readonly mean: Float64Array;
  readonly scale: Float64Array;
}

/** A feature that varies less is taken for as spread out as this: rare words do not drown the rest. */
const LEAST_DEVIATION = 0.05;

export function standardise({ states }: Transitions, rows: Int32Array): Standardisation {
  const { start, indices, values, size } = states;
  return standardiseBy(size, rows.length, (add) => {
    for (const row of rows) for (let e = start[row]!; e < start[row + 1]!; e++) add(indices[e]!, values[e]!);
  });
}

/** `each` gives every entry that is not 0 of `rows` rows. */
export function standardiseBy(
  size: number,
  rows: number,
  each: (add: (feature: number, value: number) => void) => void,
): Standardisation {
  const [mean, square] = [new Float64Array(size), new Float64Array(size)];
  each((at, value) => {
    mean[at] = mean[at]! + value / rows;
    square[at] = square[at]! + (value * value) / rows;
  });
  const scale = square.map((each, i) => {
    const variance = each - mean[i]! * mean[i]!;
    return variance > 1e-12 ? 1 / Math.max(LEAST_DEVIATION, Math.sqrt(variance)) : 0;
  });
  return { mean, scale };
}

export interface DenseBatch {
  readonly input: Floats;
  /** Rows × padded arms. */
  readonly mask: Floats;
  /** The rows of the transitions that are in it; a negative one stands for zeros. */
  readonly rows: Int32Array;
  /** `count` of `rows` are set: reads them in. */
  load(count: number): void;
}

export function makeDenseBatch(
  space: TensorSpace,
  { data, by, most }: { data: Transitions; by: Standardisation; most: number },
): DenseBatch {
  const { states, allowed, arms } = data;
  const [width, wide] = [padded(states.size, 4), padded(arms.length, 8)];
  const lines = padded(most, 4);
  const [input, mask] = [space.floats(lines * width), space.floats(lines * wide)];
  const rows = new Int32Array(lines);
  const origin = new Float32Array(width);
  for (let i = 0; i < states.size; i++) origin[i] = -by.mean[i]! * by.scale[i]!;
  return {
    ...{ input, mask, rows },
    load(count) {
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
        for (let e = states.start[row]!; e < states.start[row + 1]!; e++) {
          const i = states.indices[e]!;
          x[at + i] = x[at + i]! + states.values[e]! * by.scale[i]!;
        }
        for (let a = 0; a < arms.length; a++) open[r * wide + a] = allowed[row * arms.length + a]!;
      }
    },
  };
}

/** `count` rows drawn with replacement. */
export function drawRows(batch: DenseBatch, from: Int32Array, count: number, rng: Rng): void {
  for (let r = 0; r < count; r++) batch.rows[r] = from[rng.below(from.length)]!;
  batch.load(count);
}
