/** A training step of a network in ordinary JavaScript: loops over Float32Arrays, relu, Adam. */
export function plainStep(
  shape: { readonly inputs: number; readonly hidden: readonly number[]; readonly outputs: number },
  batch: number,
): () => void {
  const widths = [shape.inputs, ...shape.hidden, shape.outputs];
  const weights = widths.slice(1).map((n, l) => filled(widths[l]! * n, 1 / Math.sqrt(widths[l]!)));
  const moments = weights.map((w) => [new Float32Array(w.length), new Float32Array(w.length)] as const);
  const input = filled(batch * shape.inputs, 0.5);
  let t = 0;
  return () => {
    t++;
    const layers = [input];
    weights.forEach((w, l) => {
      const out = product(layers[l]!, w, [batch, widths[l]!, widths[l + 1]!]);
      layers.push(l === weights.length - 1 ? out : out.map((x) => Math.max(0, x)));
    });
    let slope = layers.at(-1)!.map((x) => (x - 0.1) / batch);
    for (let l = weights.length - 1; l >= 0; l--) {
      const [deep, wide] = [widths[l]!, widths[l + 1]!];
      const gradient = transposed(layers[l]!, slope, [batch, deep, wide]);
      const before = slope;
      slope = new Float32Array(batch * deep);
      for (let i = 0; i < batch; i++)
        for (let k = 0; k < deep; k++) {
          let sum = 0;
          for (let j = 0; j < wide; j++) sum += before[i * wide + j]! * weights[l]![k * wide + j]!;
          slope[i * deep + k] = layers[l]![i * deep + k]! > 0 ? sum : 0;
        }
      adam(weights[l]!, gradient, moments[l]!, t);
    }
  };
}

function product(
  a: Float32Array,
  b: Float32Array,
  [m, k, n]: readonly [number, number, number],
): Float32Array {
  const out = new Float32Array(m * n);
  for (let i = 0; i < m; i++)
    for (let p = 0; p < k; p++) {
      const x = a[i * k + p]!;
      for (let j = 0; j < n; j++) out[i * n + j] = out[i * n + j]! + x * b[p * n + j]!;
    }
  return out;
}

function transposed(
  x: Float32Array,
  d: Float32Array,
  [m, k, n]: readonly [number, number, number],
): Float32Array {
  const out = new Float32Array(k * n);
  for (let i = 0; i < m; i++)
    for (let p = 0; p < k; p++) {
      const value = x[i * k + p]!;
      for (let j = 0; j < n; j++) out[p * n + j] = out[p * n + j]! + value * d[i * n + j]!;
    }
  return out;
}

function adam(
  w: Float32Array,
  g: Float32Array,
  [m, v]: readonly [Float32Array, Float32Array],
  t: number,
): void {
  const [c1, c2] = [1 / (1 - 0.9 ** t), 1 / (1 - 0.999 ** t)];
  for (let i = 0; i < w.length; i++) {
    m[i] = 0.9 * m[i]! + 0.1 * g[i]!;
    v[i] = 0.999 * v[i]! + 0.001 * g[i]! * g[i]!;
    w[i] = w[i]! - (1e-3 * c1 * m[i]!) / (Math.sqrt(c2 * v[i]!) + 1e-8);
  }
}

function filled(length: number, scale: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => (((i * 7) % 31) / 31 - 0.5) * scale);
}
