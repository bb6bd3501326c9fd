/** exp and tanh on four lanes, log on one, and the row functions that use them: softmax, Huber, RMS norm. Only adds,
 *  multiplies and bit moves: the same bits on every engine. Method:
 *  argument reduction and the minimax polynomials of Cephes (Moshier, 1992) for float32; error below 2 ulp. */

// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  // Outside this range the result in float32 is 0 or infinite. The clamp keeps it a tiny or huge number.
  const bounded = f32x4.pmin(f32x4.splat(88.3), f32x4.pmax(f32x4.splat(-87.3), x));
  const n = f32x4.nearest(f32x4.mul(bounded, f32x4.splat(1.44269504088896341)));
  let r = f32x4.sub(bounded, f32x4.mul(n, f32x4.splat(0.693359375)));
  r = f32x4.sub(r, f32x4.mul(n, f32x4.splat(-2.12194440e-4)));
  let y = f32x4.splat(1.9875691500e-4);
  y = f32x4.add(f32x4.mul(y, r), f32x4.splat(1.3981999507e-3));
  y = f32x4.add(f32x4.mul(y, r), f32x4.splat(8.3334519073e-3));
  y = f32x4.add(f32x4.mul(y, r), f32x4.splat(4.1665795894e-2));
  y = f32x4.add(f32x4.mul(y, r), f32x4.splat(1.6666665459e-1));
  y = f32x4.add(f32x4.mul(y, r), f32x4.splat(5.0000001201e-1));
  y = f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(y, r), r), r), f32x4.splat(1));
  const power = i32x4.shl(i32x4.add(i32x4.trunc_sat_f32x4_s(n), i32x4.splat(127)), 23);
  return f32x4.mul(y, power);
}

/** Natural logarithm of normal x > 0. */
// @ts-ignore: decorator
@inline
export function log1(x: f32): f32 {
  const bits = reinterpret<i32>(x);
  let e = (bits >> 23) - 126;
  let m = reinterpret<f32>((bits & 0x7fffff) | 0x3f000000);
  if (m < 0.70710678) {
    e -= 1;
    m = m + m - 1;
  } else m -= 1;
  const z = m * m;
  let y: f32 = 7.0376836292e-2;
  y = y * m - 1.1514610310e-1;
  y = y * m + 1.1676998740e-1;
  y = y * m - 1.2420140846e-1;
  y = y * m + 1.4249322787e-1;
  y = y * m - 1.6668057665e-1;
  y = y * m + 2.0000714765e-1;
  y = y * m - 2.4999993993e-1;
  y = y * m + 3.3333331174e-1;
  y = y * m * z + <f32>e * -2.12194440e-4 - 0.5 * z;
  return m + y + <f32>e * 0.693359375;
}

/** tanh x = 1 − 2 / (e²ˣ + 1) on `count` values in place; `count` is a multiple of 4. */
export function tanh(x: usize, count: i32): void {
  const one = f32x4.splat(1);
  const two = f32x4.splat(2);
  for (let at = x, end = x + ((<usize>count) << 2); at < end; at += 16) {
    const grown = exp4(f32x4.mul(two, v128.load(at)));
    v128.store(at, f32x4.sub(one, f32x4.div(two, f32x4.add(grown, one))));
  }
}

// @ts-ignore: decorator
@inline
function maxLane(v: v128): f32 {
  return max(
    max(f32x4.extract_lane(v, 0), f32x4.extract_lane(v, 1)),
    max(f32x4.extract_lane(v, 2), f32x4.extract_lane(v, 3)),
  );
}

/** Sum of the four lanes in the order (0 + 1) + (2 + 3). */
// @ts-ignore: decorator
@inline
export function sumLanes(v: v128): f32 {
  return (
    f32x4.extract_lane(v, 0) +
    f32x4.extract_lane(v, 1) +
    (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3))
  );
}

/** Per row: out = softmax of x where mask is 1, and the log-sum-exp. mask holds 1 or 0, and at least one 1 per row. */
export function softmaxRows(x: usize, mask: usize, out: usize, logSumExp: usize, m: i32, n: i32): void {
  const line = (<usize>n) << 2;
  const low = f32x4.splat(-3e38);
  for (let i: i32 = 0; i < m; i++) {
    let top = low;
    for (let j: usize = 0; j < line; j += 16) {
      const allowed = f32x4.gt(v128.load(mask + j), f32x4.splat(0));
      top = f32x4.pmax(top, v128.bitselect(v128.load(x + j), low, allowed));
    }
    const highest = maxLane(top);
    let total = f32x4.splat(0);
    for (let j: usize = 0; j < line; j += 16) {
      const weight = v128.load(mask + j);
      const grown = exp4(f32x4.sub(v128.load(x + j), f32x4.splat(highest)));
      const part = v128.and(grown, f32x4.gt(weight, f32x4.splat(0)));
      v128.store(out + j, part);
      total = f32x4.add(total, part);
    }
    const sum = sumLanes(total);
    const share = f32x4.splat(1 / sum);
    for (let j: usize = 0; j < line; j += 16) v128.store(out + j, f32x4.mul(v128.load(out + j), share));
    store<f32>(logSumExp + ((<usize>i) << 2), highest + log1(sum));
    x += line;
    mask += line;
    out += line;
  }
}

/** Per value: loss ½δ² up to |δ| = 1, and |δ| − ½ beyond. The slope replaces δ. Returns the sum of the losses. */
export function huber(delta: usize, count: i32): f64 {
  let total: f64 = 0;
  for (let i: i32 = 0; i < count; i++) {
    const at = delta + ((<usize>i) << 2);
    const d = load<f32>(at);
    const size = abs(d);
    total += size <= 1 ? 0.5 * <f64>d * <f64>d : <f64>size - 0.5;
    store<f32>(at, max(<f32>-1, min(<f32>1, d)));
  }
  return total;
}

/** y = x · gain / √(mean x² + eps) per row; `inverse` keeps 1 / √(…) for the backward pass. */
export function rmsNorm(x: usize, gain: usize, y: usize, inverse: usize, m: i32, n: i32, eps: f32): void {
  const line = (<usize>n) << 2;
  for (let i: i32 = 0; i < m; i++) {
    let squares = f32x4.splat(0);
    for (let j: usize = 0; j < line; j += 16) {
      const v = v128.load(x + j);
      squares = f32x4.add(squares, f32x4.mul(v, v));
    }
    const scale = <f32>1 / sqrt<f32>(sumLanes(squares) / <f32>n + eps);
    store<f32>(inverse + ((<usize>i) << 2), scale);
    const wide = f32x4.splat(scale);
    for (let j: usize = 0; j < line; j += 16)
      v128.store(y + j, f32x4.mul(f32x4.mul(v128.load(x + j), wide), v128.load(gain + j)));
    x += line;
    y += line;
  }
}

/** dx = s·(g ⊙ dy) − x · s³/n · Σ(g ⊙ dy ⊙ x); dgain grows by Σ dy ⊙ x · s over the rows. */
export function rmsNormBackward(
  x: usize,
  gain: usize,
  inverse: usize,
  dy: usize,
  dx: usize,
  dgain: usize,
  m: i32,
  n: i32,
): void {
  const line = (<usize>n) << 2;
  for (let i: i32 = 0; i < m; i++) {
    const s = load<f32>(inverse + ((<usize>i) << 2));
    let dots = f32x4.splat(0);
    for (let j: usize = 0; j < line; j += 16) {
      const slope = f32x4.mul(v128.load(x + j), v128.load(dy + j));
      dots = f32x4.add(dots, f32x4.mul(slope, v128.load(gain + j)));
      v128.store(dgain + j, f32x4.add(v128.load(dgain + j), f32x4.mul(slope, f32x4.splat(s))));
    }
    const back = f32x4.splat((s * s * s * sumLanes(dots)) / <f32>n);
    for (let j: usize = 0; j < line; j += 16) {
      const straight = f32x4.mul(f32x4.mul(v128.load(dy + j), v128.load(gain + j)), f32x4.splat(s));
      v128.store(dx + j, f32x4.sub(straight, f32x4.mul(v128.load(x + j), back)));
    }
    x += line;
    dy += line;
    dx += line;
  }
}
