/** A training step of a network in jax-js: forward, gradient and Adam, compiled as one function. */

/** The used part of the package. An array is consumed by its use; `.ref` keeps it for another use. */
interface JaxArray {
  readonly ref: JaxArray;
  mul(other: JaxArray | number): JaxArray;
  add(other: JaxArray | number): JaxArray;
  sub(other: JaxArray | number): JaxArray;
  div(other: JaxArray | number): JaxArray;
  sum(): JaxArray;
}

interface Jax {
  init(device: string): Promise<unknown>;
  defaultDevice(device: string): unknown;
  jit<F>(f: F): F;
  grad(f: (weights: JaxArray[], x: JaxArray) => JaxArray): (weights: JaxArray[], x: JaxArray) => JaxArray[];
  blockUntilReady(value: unknown): Promise<unknown>;
  numpy: {
    array(values: Float32Array, options: { shape: number[] }): JaxArray;
    dot(a: JaxArray, b: JaxArray): JaxArray;
    maximum(a: JaxArray, b: number): JaxArray;
    square(a: JaxArray): JaxArray;
    sqrt(a: JaxArray): JaxArray;
  };
}

export async function jaxTrainingStep(
  entry: string,
  shape: { inputs: number; hidden: readonly number[]; outputs: number; batch: number },
): Promise<() => Promise<unknown>> {
  const jax = (await import(entry)) as Jax;
  await jax.init("wasm");
  jax.defaultDevice("wasm");
  const { numpy: np } = jax;
  const widths = [shape.inputs, ...shape.hidden, shape.outputs];
  const filled = (rows: number, columns: number, scale: number) =>
    np.array(
      Float32Array.from({ length: rows * columns }, (_, i) => (((i * 7) % 31) / 31 - 0.5) * scale),
      { shape: [rows, columns] },
    );
  const matrices = (scale: number) => widths.slice(1).map((n, l) => filled(widths[l]!, n, scale));
  let [weights, means, squares] = [matrices(0.1), matrices(0), matrices(0)];
  const x = filled(shape.batch, shape.inputs, 1);
  const loss = (w: JaxArray[], input: JaxArray): JaxArray => {
    const out = w.reduce((h, each, l) => {
      const y = np.dot(h, each);
      return l === w.length - 1 ? y : np.maximum(y, 0);
    }, input);
    return np
      .square(out.sub(0.1))
      .sum()
      .mul(0.5 / shape.batch);
  };
  const step = jax.jit((w: JaxArray[], m: JaxArray[], v: JaxArray[], input: JaxArray) => {
    const gradient = jax.grad(loss)(
      w.map((each) => each.ref),
      input,
    );
    const mean = m.map((each, l) => each.mul(0.9).add(gradient[l]!.ref.mul(0.1)));
    const square = v.map((each, l) => each.mul(0.999).add(np.square(gradient[l]!).mul(0.001)));
    const next = w.map((each, l) => each.sub(mean[l]!.ref.mul(1e-3).div(np.sqrt(square[l]!.ref).add(1e-8))));
    return [next, mean, square] as [JaxArray[], JaxArray[], JaxArray[]];
  });
  return async () => {
    [weights, means, squares] = step(weights, means, squares, x.ref);
    await jax.blockUntilReady(weights);
  };
}
