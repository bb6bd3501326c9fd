/** Online least squares on sparse features: one pass, one update per example, and only three columns in memory.
 *  Steps are adaptive (AdaGrad), normalised (Ross, Mineiro and Langford, 2013: a feature's unit has no effect) and
 *  never overshoot (Karampatziakis and Langford, 2011). In: vectors and targets. Out: predictions.
 *  Deterministic: exact arithmetic, examples in the given order. Does not choose its rate, and does not hash. */
import { exp, RollbookError } from "../../base/index.ts";
import type { SparseVector } from "../../policy/index.ts";

interface OnlineRegressorOptions {
  /** Length of a full vector. */
  readonly size: number;
  readonly rate: number;
  /** Predictions are clipped to this range. */
  readonly range?: { readonly low: number; readonly high: number };
}

export class OnlineRegressor {
  readonly #weights: Float64Array;
  /** Sum of squared gradients of each feature. */
  readonly #gradients: Float64Array;
  /** Largest magnitude of each feature so far. */
  readonly #scales: Float64Array;
  readonly #rate: number;
  readonly #range: { readonly low: number; readonly high: number };
  #examples = 0;
  /** Sum of squared features, each in units of its scale. */
  #norms = 0;

  constructor({ size, rate, range = { low: -Infinity, high: Infinity } }: OnlineRegressorOptions) {
    if (!(rate > 0) || !(range.low < range.high))
      throw new RollbookError(
        "bad-options",
        { rate, ...range },
        `rate is ${rate}, range ${range.low} … ${range.high}. Give a rate above 0 and a range that is not empty.`,
      );
    this.#weights = new Float64Array(size);
    this.#gradients = new Float64Array(size);
    this.#scales = new Float64Array(size);
    this.#rate = rate;
    this.#range = range;
  }

  /** A copy of the weights, one per feature. */
  weights(): Float64Array {
    return this.#weights.slice();
  }

  predict({ indices, values, count }: SparseVector): number {
    let sum = 0;
    for (let e = 0; e < count; e++) sum += this.#weights[indices[e]!]! * values[e]!;
    return Math.min(this.#range.high, Math.max(this.#range.low, sum));
  }

  /** Learns one example and returns its prediction from before: progressive validation. */
  learn(vector: SparseVector, target: number): number {
    if (!Number.isFinite(target))
      throw new RollbookError(
        "bad-training-data",
        { target: String(target) },
        `target ${target} is not finite.`,
      );
    this.#rescale(vector);
    const predicted = this.predict(vector);
    this.#examples++;
    if (predicted !== target) this.#update(vector, target - predicted);
    return predicted;
  }

  /** A new largest value of a feature rescales its past, as if it had been measured in that unit from the start. */
  #rescale({ indices, values, count }: SparseVector): void {
    for (let e = 0; e < count; e++) {
      const [at, size] = [indices[e]!, Math.abs(values[e]!)];
      const known = this.#scales[at]!;
      if (size > known) {
        this.#weights[at] = (this.#weights[at]! * known) / size;
        this.#scales[at] = size;
      }
      if (size > 0) this.#norms += (size / this.#scales[at]!) ** 2;
    }
  }

  #update({ indices, values, count }: SparseVector, error: number): void {
    const square = 4 * error * error;
    for (let e = 0; e < count; e++) {
      const at = indices[e]!;
      this.#gradients[at] = this.#gradients[at]! + square * values[e]! * values[e]!;
    }
    const common = Math.sqrt(this.#examples / this.#norms);
    let response = 0;
    for (let e = 0; e < count; e++) response += values[e]! * values[e]! * this.#stepOf(indices[e]!);
    response *= common;
    // The exact solution of following the gradient for `rate` units of time. It never passes the target.
    const step = response === 0 ? 0 : (error * (1 - exp(-2 * this.#rate * response))) / response;
    for (let e = 0; e < count; e++) {
      const at = indices[e]!;
      this.#weights[at] = this.#weights[at]! + step * common * values[e]! * this.#stepOf(at);
    }
  }

  #stepOf(at: number): number {
    const spread = this.#scales[at]! * Math.sqrt(this.#gradients[at]!);
    // The squares of such small features underflow, so they teach nothing.
    return spread < 1e-150 ? 0 : 1 / spread;
  }
}
