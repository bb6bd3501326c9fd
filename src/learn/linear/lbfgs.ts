/** Minimises a smooth function by L-BFGS (Nocedal and Wright, algorithms 7.4 and 7.5) with a backtracking line search.
 *  In: a start, a function that returns its value and writes its gradient. Out: the last point, in the start's array.
 *  Deterministic: additions in a fixed order, no random draws. Meant for convex losses. */
import { dot } from "../../base/index.ts";

export interface Minimised {
  readonly value: number;
  readonly iterations: number;
  /** True if the gradient's largest entry fell below the tolerance. */
  readonly converged: boolean;
}

interface LbfgsOptions {
  readonly maxIterations: number;
  readonly tolerance: number;
  /** Number of stored pairs. */
  readonly memory?: number;
}

export type Objective = (point: Float64Array, gradient: Float64Array) => number;

/** Share of the predicted decrease that a step must reach (Armijo). */
const DECREASE = 1e-4;
const MOST_HALVINGS = 30;

export function minimise(point: Float64Array, objective: Objective, options: LbfgsOptions): Minimised {
  const { maxIterations, tolerance, memory = 8 } = options;
  const size = point.length;
  let gradient = new Float64Array(size);
  let nextGradient = new Float64Array(size);
  const next = new Float64Array(size);
  const pairs: Pair[] = [];
  let value = objective(point, gradient);
  for (let iteration = 0; iteration < maxIterations; iteration++) {
    if (largest(gradient) <= tolerance) return { value, iterations: iteration, converged: true };
    const direction = descend(gradient, pairs);
    const slope = dot(direction, gradient);
    let step = pairs.length === 0 ? 1 / Math.max(1, Math.sqrt(dot(gradient, gradient))) : 1;
    let nextValue = value;
    let halvings = 0;
    for (; halvings < MOST_HALVINGS; halvings++) {
      for (let i = 0; i < size; i++) next[i] = point[i]! + step * direction[i]!;
      nextValue = objective(next, nextGradient);
      if (nextValue <= value + DECREASE * step * slope) break;
      step /= 2;
    }
    // No step decreases the value any more: only rounding errors are left.
    if (halvings === MOST_HALVINGS) return { value, iterations: iteration, converged: false };
    remember(pairs, { point, next, gradient, nextGradient, memory });
    point.set(next);
    [gradient, nextGradient] = [nextGradient, gradient];
    value = nextValue;
  }
  return { value, iterations: maxIterations, converged: largest(gradient) <= tolerance };
}

interface Pair {
  readonly move: Float64Array;
  readonly change: Float64Array;
  readonly inverse: number;
}

/** The two-loop recursion: minus the estimated inverse Hessian times the gradient. */
function descend(gradient: Float64Array, pairs: readonly Pair[]): Float64Array {
  const direction = Float64Array.from(gradient);
  const shares: number[] = [];
  for (let p = pairs.length - 1; p >= 0; p--) {
    const { move, change, inverse } = pairs[p]!;
    const share = inverse * dot(move, direction);
    shares[p] = share;
    addScaled(direction, change, -share);
  }
  const last = pairs.at(-1);
  const scale = last === undefined ? 1 : 1 / (last.inverse * dot(last.change, last.change));
  for (let i = 0; i < direction.length; i++) direction[i] = direction[i]! * scale;
  for (let p = 0; p < pairs.length; p++) {
    const { move, change, inverse } = pairs[p]!;
    addScaled(direction, move, shares[p]! - inverse * dot(change, direction));
  }
  for (let i = 0; i < direction.length; i++) direction[i] = -direction[i]!;
  return direction;
}

function remember(
  pairs: Pair[],
  moved: {
    point: Float64Array;
    next: Float64Array;
    gradient: Float64Array;
    nextGradient: Float64Array;
    memory: number;
  },
): void {
  const move = minus(moved.next, moved.point);
  const change = minus(moved.nextGradient, moved.gradient);
  const curvature = dot(move, change);
  // Without positive curvature the estimate would not be positive definite.
  if (!(curvature > 1e-12 * dot(change, change))) return;
  pairs.push({ move, change, inverse: 1 / curvature });
  if (pairs.length > moved.memory) pairs.shift();
}

function addScaled(target: Float64Array, other: Float64Array, scale: number): void {
  for (let i = 0; i < target.length; i++) target[i] = target[i]! + scale * other[i]!;
}

function minus(a: Float64Array, b: Float64Array): Float64Array {
  const out = new Float64Array(a.length);
  for (let i = 0; i < a.length; i++) out[i] = a[i]! - b[i]!;
  return out;
}

function largest(values: Float64Array): number {
  let top = 0;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]!);
    if (size > top) top = size;
  }
  return top;
}
