/** A multilayer perceptron on the kernels: forward, and backward by hand.
 *  In: a workspace, a shape, the most rows of a minibatch. Out: parameters and gradient as two flat blocks of one
 *  layout, so that optimizers and target networks see one vector.
 *  Inside, widths are padded with zeros, which stay zeros. */
import { dot, drawNormal, type Rng } from "../../base/index.ts";
import type { Tensors } from "../../policy/index.ts";
import type { VectorPart } from "./optimizer.ts";
import { type Floats, padded, type TensorSpace } from "./tensor-space.ts";

export interface MlpShape {
  readonly inputs: number;
  readonly hidden: readonly number[];
  readonly outputs: number;
  readonly activation: "relu" | "tanh";
}

export interface Mlp {
  readonly shape: MlpShape;
  /** Distance from one row to the next in values, for inputs and for outputs. */
  readonly inputWidth: number;
  readonly outputWidth: number;
  readonly parameters: Floats;
  readonly gradient: Floats;
  /** Places of the biases in the vector. */
  readonly biases: readonly VectorPart[];
  /** First place of the output layer, which is the last part of the vector. */
  readonly lastLayer: number;
  /** The outputs for `rows` rows of `input`, valid until the next call. `parameters`: another vector of this layout. */
  forward(input: Floats, rows: number, parameters?: Floats): Floats;
  /** Fills `gradient` from the gradient by the outputs, for the rows and parameters of the last `forward`. */
  backward(slope: Floats, parameters?: Floats): void;
}

interface LayerPlace {
  readonly inputs: number;
  readonly outputs: number;
  /** Padded widths. */
  readonly wide: number;
  readonly deep: number;
  /** Places of weights (inputs × outputs) and bias, in values from the start of the vector. */
  readonly weights: number;
  readonly bias: number;
}

// The same numbers as in kernels/product.ts.
const ACTIVATIONS = { none: 0, relu: 1, tanh: 2 } as const;

export function makeMlp(space: TensorSpace, shape: MlpShape, mostRows: number): Mlp {
  const { kernels } = space;
  const { layers, size } = layOut(shape);
  const room = padded(mostRows, 4);
  const outputs = layers.map(({ wide }) => space.floats(room * wide));
  const slopes = layers.slice(0, -1).map(({ wide }) => space.floats(room * wide));
  const parameters = space.floats(size);
  const gradient = space.floats(size);
  const last = layers.length - 1;
  let seen = { input: parameters, rows: 0 };

  const forward = (input: Floats, rows: number, from = parameters): Floats => {
    seen = { input, rows };
    const lines = padded(rows, 4);
    layers.forEach(({ wide, deep, weights, bias }, l) => {
      const activation = l === last ? "none" : shape.activation;
      const [x, y] = [l === 0 ? input : outputs[l - 1]!, outputs[l]!];
      const [w, b] = [from.at + 4 * weights, from.at + 4 * bias];
      kernels.product(x.at, deep, 1, w, b, y.at, 0, lines, wide, deep, ACTIVATIONS[activation]);
      if (activation === "tanh") kernels.tanh(y.at, lines * wide);
    });
    return outputs[last]!;
  };

  const backward = (slope: Floats, from = parameters): void => {
    const { input, rows } = seen;
    for (let l = last; l >= 0; l--) {
      const { wide, deep, weights, bias } = layers[l]!;
      const dy = l === last ? slope : slopes[l]!;
      const x = l === 0 ? input : outputs[l - 1]!;
      const dw = gradient.at + 4 * weights;
      kernels.product(x.at, 1, deep, dy.at, 0, dw, 0, deep, wide, rows, ACTIVATIONS.none);
      kernels.columnSums(dy.at, gradient.at + 4 * bias, rows, wide);
      if (l === 0) return;
      const [dx, gate] = [slopes[l - 1]!.at, outputs[l - 1]!.at];
      const w = from.at + 4 * weights;
      const kind = ACTIVATIONS[shape.activation];
      kernels.productTransposed(dy.at, w, dx, 0, padded(rows, 4), deep, wide, gate, kind);
    }
  };

  return {
    ...{ shape, parameters, gradient, forward, backward },
    inputWidth: layers[0]!.deep,
    outputWidth: layers[last]!.wide,
    lastLayer: layers[last]!.weights,
    biases: layers.map(({ bias, wide }) => ({ from: bias, length: wide })),
  };
}

/** Weights and biases by layer (`w0`, `b0`, …) without the padding, as in a checkpoint. */
export function namedParameters(shape: MlpShape, values: Float32Array): Tensors {
  const tensors: Record<string, Tensors[string]> = {};
  layOut(shape).layers.forEach(({ inputs, outputs, wide, weights, bias }, l) => {
    const data = new Float32Array(inputs * outputs);
    for (let i = 0; i < inputs; i++)
      data.set(values.subarray(weights + i * wide, weights + i * wide + outputs), i * outputs);
    tensors[`w${l}`] = { shape: [inputs, outputs], data };
    tensors[`b${l}`] = { shape: [outputs], data: values.slice(bias, bias + outputs) };
  });
  return tensors;
}

/** Weights and biases uniform in ±1/√inputs: the usual initialisation of a value network. */
export function uniformStart(shape: MlpShape, values: Float32Array, rng: Rng): void {
  for (const { inputs, outputs, wide, weights, bias } of layOut(shape).layers) {
    const bound = 1 / Math.sqrt(inputs);
    const drawn = () => (2 * rng.float() - 1) * bound;
    for (let i = 0; i < inputs; i++)
      for (let o = 0; o < outputs; o++) values[weights + i * wide + o] = drawn();
    for (let o = 0; o < outputs; o++) values[bias + o] = drawn();
  }
}

/** Orthogonal weights times a gain (√2, and `lastGain` for the outputs), biases 0 (Saxe,
 *  McClelland and Ganguli, 2014). */
export function orthogonalStart(shape: MlpShape, values: Float32Array, rng: Rng, lastGain: number): void {
  const { layers } = layOut(shape);
  layers.forEach(({ inputs, outputs, wide, weights }, l) => {
    const gain = l === layers.length - 1 ? lastGain : Math.SQRT2;
    const tall = inputs >= outputs;
    const basis = orthonormal(Math.min(inputs, outputs), Math.max(inputs, outputs), rng);
    for (let i = 0; i < inputs; i++)
      for (let o = 0; o < outputs; o++)
        values[weights + i * wide + o] = gain * (tall ? basis[o]![i]! : basis[i]![o]!);
  });
}

/** `count` random orthonormal vectors of length `size`, by Gram-Schmidt, applied twice for accuracy. */
function orthonormal(count: number, size: number, rng: Rng): Float64Array[] {
  const basis: Float64Array[] = [];
  while (basis.length < count) {
    const vector = Float64Array.from({ length: size }, () => drawNormal(rng));
    for (let pass = 0; pass < 2; pass++)
      for (const other of basis) {
        const share = dot(vector, other);
        for (let i = 0; i < size; i++) vector[i] = vector[i]! - share * other[i]!;
      }
    const length = Math.sqrt(dot(vector, vector));
    basis.push(vector.map((each) => each / length));
  }
  return basis;
}

function layOut({ inputs, hidden, outputs }: MlpShape): { layers: readonly LayerPlace[]; size: number } {
  const widths = [inputs, ...hidden, outputs];
  const layers: LayerPlace[] = [];
  let size = 0;
  for (let l = 0; l + 1 < widths.length; l++) {
    const deep = padded(widths[l]!, l === 0 ? 4 : 8);
    const wide = padded(widths[l + 1]!, 8);
    const weights = size;
    const bias = weights + deep * wide;
    size = bias + wide;
    layers.push({ inputs: widths[l]!, outputs: widths[l + 1]!, wide, deep, weights, bias });
  }
  return { layers, size };
}
