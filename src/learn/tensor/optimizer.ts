/** Optimizers as pairs of functions:
 *  `init` makes the state of a parameter vector, `update` changes the vector in place. */
import type { Floats, TensorSpace } from "./tensor-space.ts";

interface AdamOptions {
  readonly beta1?: number;
  readonly beta2?: number;
  readonly epsilon?: number;
  /** Decoupled weight decay; 0 is plain Adam. */
  readonly decay?: number;
  /** Parts that do not decay, ascending, in values from the start of the vector. A bias holds the mean of the
   *  predictions. A smaller bias makes every prediction too small,
   *  and a chain of predictions smaller with every step. */
  readonly exempt?: readonly VectorPart[];
}

/** A part of a parameter vector: its first value and its number of values. */
export interface VectorPart {
  readonly from: number;
  readonly length: number;
}

export interface AdamState {
  /** Number of updates done. */
  step: number;
  readonly mean: Floats;
  readonly square: Floats;
}

interface Optimizer<State> {
  init(parameters: Floats): State;
  update(parameters: Floats, gradient: Floats, state: State, rate: number): void;
}

export function adamW(space: TensorSpace, options: AdamOptions = {}): Optimizer<AdamState> {
  const { beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0, exempt = [] } = options;
  return {
    init: ({ length }) => ({ step: 0, mean: space.floats(length), square: space.floats(length) }),
    update(parameters, gradient, state, rate) {
      state.step++;
      const correct = [1 / (1 - power(beta1, state.step)), 1 / (1 - power(beta2, state.step))] as const;
      const step = (from: number, length: number, shrink: number) =>
        space.kernels.adamW(
          ...([parameters, gradient, state.mean, state.square].map(({ at }) => at + 4 * from) as Addresses),
          ...([length, rate, beta1, beta2, ...correct, epsilon, shrink] as const),
        );
      if (decay === 0) return step(0, parameters.length, 0);
      let from = 0;
      for (const part of exempt) {
        if (part.from > from) step(from, part.from - from, decay);
        step(part.from, part.length, 0);
        from = part.from + part.length;
      }
      if (from < parameters.length) step(from, parameters.length - from, decay);
    },
  };
}

type Addresses = [weights: number, gradient: number, mean: number, square: number];

/** Scales a longer gradient down to length `most`. Returns the length before. */
export function clipNorm({ kernels }: TensorSpace, gradient: Floats, most: number): number {
  const norm = Math.sqrt(kernels.squaredNorm(gradient.at, gradient.length));
  if (norm > most) kernels.scale(gradient.at, gradient.length, most / norm);
  return norm;
}

/** target = (1 − τ)·target + τ·online (Polyak averaging); τ = 1 copies. */
export function follow({ kernels }: TensorSpace, target: Floats, online: Floats, tau: number): void {
  kernels.follow(target.at, online.at, target.length, tau);
}

/** Power by squaring: the last bit of `**` may differ between engines. */
function power(base: number, exponent: number): number {
  let result = 1;
  for (let factor = base, rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result *= factor;
    factor *= factor;
  }
  return result;
}
