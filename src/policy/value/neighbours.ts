/** Nearest neighbours among sparse rows: the mean outcome of each candidate over the k rows nearest to a question.
 *  In: rows with their outcomes, then vectors. Out: one value per candidate. Exact search through an inverted index.
 *  Ties in distance go to the earlier row, so the answer is a function of the rows alone. */
import type { SparseVector } from "../features.ts";
import { distinctRows, type VectorRows } from "./distinct-rows.ts";

export interface NeighbourRows extends VectorRows {
  /** Outcome e belongs to row `outcomeRow[e]` and candidate `arm[e]`; rows ascend. */
  readonly outcomeRow: Int32Array;
  readonly arm: Int32Array;
  readonly target: Float64Array;
}

interface NeighbourOptions {
  readonly size: number;
  readonly arms: number;
  /** Numbers of neighbours; each gives its own mean. */
  readonly ks: readonly number[];
  /** Prior mean of each arm. It counts as one more neighbour, so that few neighbours do not decide alone. */
  readonly prior: Float64Array;
}

/** Writes ks × arms values to `out`. */
export type NeighbourMeans = (vector: SparseVector, out: Float64Array) => void;

export function neighbourMeans(rows: NeighbourRows, options: NeighbourOptions): NeighbourMeans {
  const { arms, ks, prior } = options;
  const most = Math.max(...ks);
  const { kind, first } = distinctRows(rows);
  const postings = invert(rows, first, options.size);
  const norms = squaredNorms(rows, first);
  const products = new Float64Array(first.length);
  const outcomeKind = rows.outcomeRow.map((row) => kind[row]!);
  const best = Array.from({ length: arms }, () => new NearestFew(most));
  return (vector, out) => {
    products.fill(0);
    for (let e = 0; e < vector.count; e++) {
      const [column, value] = [vector.indices[e]!, vector.values[e]!];
      for (let p = postings.start[column]!; p < postings.start[column + 1]!; p++) {
        const own = postings.kinds[p]!;
        products[own] = products[own]! + value * postings.values[p]!;
      }
    }
    for (const each of best) each.clear();
    for (let e = 0; e < rows.arm.length; e++) {
      const own = outcomeKind[e]!;
      // ‖q‖² is the same for all rows and does not change their order.
      best[rows.arm[e]!]!.offer(norms[own]! - 2 * products[own]!, e);
    }
    for (let j = 0; j < ks.length; j++)
      for (let a = 0; a < arms; a++) {
        const near = best[a]!;
        const count = Math.min(ks[j]!, near.count);
        let sum = prior[a]!;
        for (let i = 0; i < count; i++) sum += rows.target[near.items[i]!]!;
        out[j * arms + a] = sum / (count + 1);
      }
  };
}

/** The k smallest distances, in ascending order. */
class NearestFew {
  readonly items: Int32Array;
  count = 0;
  readonly #distances: Float64Array;

  constructor(k: number) {
    this.items = new Int32Array(k);
    this.#distances = new Float64Array(k);
  }

  clear(): void {
    this.count = 0;
  }

  offer(distance: number, item: number): void {
    const { items } = this;
    const distances = this.#distances;
    const full = this.count === items.length;
    if (full && !(distance < distances[this.count - 1]!)) return;
    let at = full ? this.count - 1 : this.count++;
    while (at > 0 && distances[at - 1]! > distance) {
      distances[at] = distances[at - 1]!;
      items[at] = items[at - 1]!;
      at--;
    }
    distances[at] = distance;
    items[at] = item;
  }
}

/** For each column, the kinds of rows that have it. */
function invert({ start, indices, values }: NeighbourRows, first: Int32Array, size: number) {
  const from = new Int32Array(size + 1);
  for (const r of first)
    for (let e = start[r]!; e < start[r + 1]!; e++) from[indices[e]! + 1] = from[indices[e]! + 1]! + 1;
  for (let column = 0; column < size; column++) from[column + 1] = from[column + 1]! + from[column]!;
  const next = from.slice();
  const kinds = new Int32Array(from[size]!);
  const own = new Float64Array(from[size]!);
  first.forEach((r, kind) => {
    for (let e = start[r]!; e < start[r + 1]!; e++) {
      const place = next[indices[e]!]!;
      next[indices[e]!] = place + 1;
      kinds[place] = kind;
      own[place] = values[e]!;
    }
  });
  return { start: from, kinds, values: own };
}

function squaredNorms({ start, values }: NeighbourRows, first: Int32Array): Float64Array {
  return Float64Array.from(first, (r) => {
    let sum = 0;
    for (let e = start[r]!; e < start[r + 1]!; e++) sum += values[e]! * values[e]!;
    return sum;
  });
}
