/** Ridge regression of outcomes on sparse rows, all candidates at once, by preconditioned conjugate gradients.
 *  In: rows, outcomes, penalties. Out: one linear model per candidate. It minimises
 *    Σ s·(y − b_a − (w_0 + w_a)·x)² + λ_0·‖w_0‖² + λ·Σ‖w_a‖².
 *  The shared part w_0 models how hard a question is for all candidates, so few outcomes of a candidate suffice for its
 *  own part. The biases have no penalty. Deterministic: fixed order, no random draws. */
import { dot } from "../../base/index.ts";
import type { SparseRows } from "../rows/index.ts";

interface RidgeOutcomes {
  /** Outcomes of row r: start[r] … start[r+1]. */
  readonly start: Int32Array;
  readonly arm: Int32Array;
  readonly target: Float64Array;
  readonly weight: Float64Array;
}

export interface RidgePenalties {
  /** λ of each candidate's own part. */
  readonly own: number;
  /** λ_0 of the shared part; undefined: no shared part. */
  readonly shared?: number | undefined;
}

/** `weights`: features × candidates; `state`: the start of a later solution. */
export interface LinearValues {
  readonly weights: Float64Array;
  readonly bias: Float64Array;
  readonly state: Float64Array;
}

interface RidgeRequest {
  readonly rows: SparseRows;
  /** Numbers of the training rows. */
  readonly picked: Int32Array;
  readonly outcomes: RidgeOutcomes;
  readonly arms: number;
  readonly penalties: RidgePenalties;
  readonly from?: Float64Array | undefined;
  readonly maxIterations?: number;
  readonly tolerance?: number;
}

/** Keeps the biases' equations solvable for a candidate without outcomes. */
const BIAS_PENALTY = 1e-6;

export function solveRidge(request: RidgeRequest): LinearValues {
  const { maxIterations = 60, tolerance = 1e-3 } = request;
  const system = new RidgeSystem(request);
  const { length } = system;
  // The tolerance is a share of the residual at zero. Few vectors at once, because each is as long as all weights.
  const point = new Float64Array(length);
  const residual = new Float64Array(length);
  const scaled = new Float64Array(length);
  system.residual(point, residual);
  system.precondition(residual, scaled);
  const enough = tolerance * tolerance * dot(residual, scaled);
  if (request.from?.length === length) {
    point.set(request.from);
    system.residual(point, residual);
    system.precondition(residual, scaled);
  }
  const image = new Float64Array(length);
  const direction = scaled.slice();
  let norm = dot(residual, scaled);
  for (let i = 0; i < maxIterations && norm > enough; i++) {
    system.curvature(direction, image);
    const step = norm / dot(direction, image);
    for (let j = 0; j < length; j++) {
      point[j] = point[j]! + step * direction[j]!;
      residual[j] = residual[j]! - step * image[j]!;
    }
    system.precondition(residual, scaled);
    const next = dot(residual, scaled);
    const share = next / norm;
    for (let j = 0; j < length; j++) direction[j] = scaled[j]! + share * direction[j]!;
    norm = next;
  }
  return system.split(point);
}

/** The normal equations, never formed: a pass over the rows applies them. Parameters are grouped by feature: the shared
 *  one first, then one per candidate. The biases come last. */
class RidgeSystem {
  readonly length: number;
  readonly #request: RidgeRequest;
  readonly #width: number;
  readonly #offset: number;
  readonly #biases: number;
  readonly #diagonal: Float64Array;
  readonly #scores: Float64Array;

  constructor(request: RidgeRequest) {
    const { rows, arms, penalties, outcomes, picked } = request;
    this.#request = request;
    this.#offset = penalties.shared === undefined ? 0 : 1;
    this.#width = arms + this.#offset;
    this.#biases = rows.size * this.#width;
    this.length = this.#biases + arms;
    this.#diagonal = this.#diagonalOf();
    let most = 1;
    for (const r of picked) most = Math.max(most, outcomes.start[r + 1]! - outcomes.start[r]!);
    this.#scores = new Float64Array(most);
  }

  residual(point: Float64Array, out: Float64Array): void {
    out.fill(0);
    this.#sweep(point, out, true);
    for (let j = 0; j < out.length; j++) out[j] = -out[j]!;
  }

  curvature(direction: Float64Array, out: Float64Array): void {
    out.fill(0);
    this.#sweep(direction, out, false);
  }

  precondition(from: Float64Array, to: Float64Array): void {
    for (let j = 0; j < from.length; j++) to[j] = from[j]! / this.#diagonal[j]!;
  }

  split(point: Float64Array): LinearValues {
    const { rows, arms } = this.#request;
    const weights = new Float64Array(rows.size * arms);
    for (let f = 0; f < rows.size; f++) {
      const base = f * this.#width;
      const shared = this.#offset === 0 ? 0 : point[base]!;
      for (let a = 0; a < arms; a++) weights[f * arms + a] = shared + point[base + this.#offset + a]!;
    }
    return { weights, bias: point.slice(this.#biases), state: point };
  }

  /** out += Xᵀ·s·(X·point − y) + λ·point, with y only if `offset`. */
  #sweep(point: Float64Array, out: Float64Array, offset: boolean): void {
    const { rows, picked, outcomes } = this.#request;
    const { start, arm, target, weight } = outcomes;
    for (const r of picked) {
      const [from, to] = [start[r]!, start[r + 1]!];
      if (to === from + 1) this.#one(r, from, point, out, offset);
      else this.#several(rows, { r, from, to, point, out, offset, arm, target, weight });
    }
    this.#penalise(point, out);
  }

  /** A row with one outcome: the shared weight and the candidate's own weight are adjacent in memory. */
  #one(r: number, at: number, point: Float64Array, out: Float64Array, offset: boolean): void {
    const { rows, outcomes } = this.#request;
    const { start, indices, values } = rows;
    const [width, shift] = [this.#width, this.#offset];
    const own = shift + outcomes.arm[at]!;
    const bias = this.#biases + outcomes.arm[at]!;
    let score = point[bias]! - (offset ? outcomes.target[at]! : 0);
    const [from, to] = [start[r]!, start[r + 1]!];
    if (shift === 1)
      for (let e = from; e < to; e++) {
        const base = indices[e]! * width;
        score += values[e]! * (point[base]! + point[base + own]!);
      }
    else for (let e = from; e < to; e++) score += values[e]! * point[indices[e]! * width + own]!;
    const error = score * outcomes.weight[at]!;
    out[bias] = out[bias]! + error;
    for (let e = from; e < to; e++) {
      const base = indices[e]! * width;
      const change = error * values[e]!;
      if (shift === 1) out[base] = out[base]! + change;
      out[base + own] = out[base + own]! + change;
    }
  }

  #several(
    rows: SparseRows,
    at: {
      r: number;
      from: number;
      to: number;
      point: Float64Array;
      out: Float64Array;
      offset: boolean;
    } & Pick<RidgeOutcomes, "arm" | "target" | "weight">,
  ): void {
    const { r, from, to, point, out, offset, arm, target, weight } = at;
    const { start, indices, values } = rows;
    const [width, shift, scores] = [this.#width, this.#offset, this.#scores];
    const count = to - from;
    for (let t = 0; t < count; t++)
      scores[t] = point[this.#biases + arm[from + t]!]! - (offset ? target[from + t]! : 0);
    let shared = 0;
    for (let e = start[r]!; e < start[r + 1]!; e++) {
      const [base, value] = [indices[e]! * width, values[e]!];
      if (shift === 1) shared += value * point[base]!;
      for (let t = 0; t < count; t++) scores[t] = scores[t]! + value * point[base + shift + arm[from + t]!]!;
    }
    let sum = 0;
    for (let t = 0; t < count; t++) {
      scores[t] = (scores[t]! + shared) * weight[from + t]!;
      sum += scores[t]!;
      const bias = this.#biases + arm[from + t]!;
      out[bias] = out[bias]! + scores[t]!;
    }
    for (let e = start[r]!; e < start[r + 1]!; e++) {
      const [base, value] = [indices[e]! * width, values[e]!];
      if (shift === 1) out[base] = out[base]! + value * sum;
      for (let t = 0; t < count; t++) {
        const place = base + shift + arm[from + t]!;
        out[place] = out[place]! + value * scores[t]!;
      }
    }
  }

  #penalise(point: Float64Array, out: Float64Array): void {
    const { own, shared = 0 } = this.#request.penalties;
    for (let base = 0; base < this.#biases; base += this.#width) {
      if (this.#offset === 1) out[base] = out[base]! + shared * point[base]!;
      for (let j = base + this.#offset; j < base + this.#width; j++) out[j] = out[j]! + own * point[j]!;
    }
    for (let j = this.#biases; j < this.length; j++) out[j] = out[j]! + BIAS_PENALTY * point[j]!;
  }

  #diagonalOf(): Float64Array {
    const { rows, picked, outcomes, penalties } = this.#request;
    const diagonal = new Float64Array(this.length);
    for (const r of picked)
      for (let t = outcomes.start[r]!; t < outcomes.start[r + 1]!; t++) {
        const [own, weight] = [this.#offset + outcomes.arm[t]!, outcomes.weight[t]!];
        const bias = this.#biases + outcomes.arm[t]!;
        diagonal[bias] = diagonal[bias]! + weight;
        for (let e = rows.start[r]!; e < rows.start[r + 1]!; e++) {
          const base = rows.indices[e]! * this.#width;
          const square = weight * rows.values[e]! * rows.values[e]!;
          if (this.#offset === 1) diagonal[base] = diagonal[base]! + square;
          diagonal[base + own] = diagonal[base + own]! + square;
        }
      }
    for (let j = 0; j < this.length; j++) {
      const penalty =
        j >= this.#biases
          ? BIAS_PENALTY
          : this.#offset === 1 && j % this.#width === 0
            ? penalties.shared!
            : penalties.own;
      diagonal[j] = diagonal[j]! + penalty;
    }
    return diagonal;
  }
}
