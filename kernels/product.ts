/** Matrix products in the three shapes that forward and backward passes need, for rows `firstRow` … `lastRow` of the
 *  result. Each element is one sum in one fixed order, so neither blocking nor threads change a bit.
 *  Rows come in fours and columns in eights; the caller pads. */

// Numbers of the activations, as in src/learn/tensor/mlp.ts.
const RELU: i32 = 1;
const TANH: i32 = 2;

/** C[m×n] = relu?(bias + A·B), with A[i,p] at a + 4(i·rowStep + p·colStep): steps (k, 1) read A, steps (1, m) read Aᵀ.
 *  `bias` may be 0. Four rows by eight columns at a time: eight sums stay in registers. */
export function product(
  a: usize,
  rowStep: i32,
  colStep: i32,
  b: usize,
  bias: usize,
  c: usize,
  firstRow: i32,
  lastRow: i32,
  n: i32,
  k: i32,
  activation: i32,
): void {
  const rs = (<usize>rowStep) << 2;
  const cs = (<usize>colStep) << 2;
  const line = (<usize>n) << 2;
  for (let j: i32 = 0; j < n; j += 8) {
    const column = (<usize>j) << 2;
    let s0 = f32x4.splat(0);
    let s1 = s0;
    if (bias != 0) {
      s0 = v128.load(bias + column);
      s1 = v128.load(bias + column, 16);
    }
    for (let i: i32 = firstRow; i < lastRow; i += 4) {
      let x0 = a + <usize>i * rs;
      let x1 = x0 + rs;
      let x2 = x1 + rs;
      let x3 = x2 + rs;
      let y = b + column;
      let c00 = s0;
      let c01 = s1;
      let c10 = s0;
      let c11 = s1;
      let c20 = s0;
      let c21 = s1;
      let c30 = s0;
      let c31 = s1;
      for (let p: i32 = 0; p < k; p++) {
        const w0 = v128.load(y);
        const w1 = v128.load(y, 16);
        let v = v128.load32_splat(x0);
        c00 = f32x4.add(c00, f32x4.mul(v, w0));
        c01 = f32x4.add(c01, f32x4.mul(v, w1));
        v = v128.load32_splat(x1);
        c10 = f32x4.add(c10, f32x4.mul(v, w0));
        c11 = f32x4.add(c11, f32x4.mul(v, w1));
        v = v128.load32_splat(x2);
        c20 = f32x4.add(c20, f32x4.mul(v, w0));
        c21 = f32x4.add(c21, f32x4.mul(v, w1));
        v = v128.load32_splat(x3);
        c30 = f32x4.add(c30, f32x4.mul(v, w0));
        c31 = f32x4.add(c31, f32x4.mul(v, w1));
        x0 += cs;
        x1 += cs;
        x2 += cs;
        x3 += cs;
        y += line;
      }
      if (activation == RELU) {
        const zero = f32x4.splat(0);
        c00 = f32x4.pmax(zero, c00);
        c01 = f32x4.pmax(zero, c01);
        c10 = f32x4.pmax(zero, c10);
        c11 = f32x4.pmax(zero, c11);
        c20 = f32x4.pmax(zero, c20);
        c21 = f32x4.pmax(zero, c21);
        c30 = f32x4.pmax(zero, c30);
        c31 = f32x4.pmax(zero, c31);
      }
      let to = c + <usize>i * line + column;
      v128.store(to, c00);
      v128.store(to, c01, 16);
      to += line;
      v128.store(to, c10);
      v128.store(to, c11, 16);
      to += line;
      v128.store(to, c20);
      v128.store(to, c21, 16);
      to += line;
      v128.store(to, c30);
      v128.store(to, c31, 16);
    }
  }
}

/** C[m×n] = (A[m×k] · B[n×k]ᵀ) ⊙ act′(gate). `gate` is the output of the activation; k is a multiple of 4. */
export function productTransposed(
  a: usize,
  b: usize,
  c: usize,
  firstRow: i32,
  lastRow: i32,
  n: i32,
  k: i32,
  gate: usize,
  activation: i32,
): void {
  const depth = (<usize>k) << 2;
  const line = (<usize>n) << 2;
  for (let j: i32 = 0; j < n; j += 4) {
    const y = b + <usize>j * depth;
    for (let i: i32 = firstRow; i < lastRow; i += 2) {
      let x0 = a + <usize>i * depth;
      let x1 = x0 + depth;
      let y0 = y;
      let y1 = y0 + depth;
      let y2 = y1 + depth;
      let y3 = y2 + depth;
      let c00 = f32x4.splat(0);
      let c01 = c00;
      let c02 = c00;
      let c03 = c00;
      let c10 = c00;
      let c11 = c00;
      let c12 = c00;
      let c13 = c00;
      for (const end = x0 + depth; x0 < end; x0 += 16) {
        const u = v128.load(x0);
        const v = v128.load(x1);
        let w = v128.load(y0);
        c00 = f32x4.add(c00, f32x4.mul(u, w));
        c10 = f32x4.add(c10, f32x4.mul(v, w));
        w = v128.load(y1);
        c01 = f32x4.add(c01, f32x4.mul(u, w));
        c11 = f32x4.add(c11, f32x4.mul(v, w));
        w = v128.load(y2);
        c02 = f32x4.add(c02, f32x4.mul(u, w));
        c12 = f32x4.add(c12, f32x4.mul(v, w));
        w = v128.load(y3);
        c03 = f32x4.add(c03, f32x4.mul(u, w));
        c13 = f32x4.add(c13, f32x4.mul(v, w));
        x1 += 16;
        y0 += 16;
        y1 += 16;
        y2 += 16;
        y3 += 16;
      }
      const at = <usize>i * line + ((<usize>j) << 2);
      v128.store(c + at, gated(sums(c00, c01, c02, c03), gate + at, activation));
      v128.store(c + at + line, gated(sums(c10, c11, c12, c13), gate + at + line, activation));
    }
  }
}

/** The four horizontal sums, each in the order (0 + 2) + (1 + 3). */
// @ts-ignore: decorator
@inline
function sums(a: v128, b: v128, c: v128, d: v128): v128 {
  const ab = f32x4.add(v128.shuffle<f32>(a, b, 0, 1, 4, 5), v128.shuffle<f32>(a, b, 2, 3, 6, 7));
  const cd = f32x4.add(v128.shuffle<f32>(c, d, 0, 1, 4, 5), v128.shuffle<f32>(c, d, 2, 3, 6, 7));
  return f32x4.add(v128.shuffle<f32>(ab, cd, 0, 2, 4, 6), v128.shuffle<f32>(ab, cd, 1, 3, 5, 7));
}

// @ts-ignore: decorator
@inline
function gated(x: v128, gate: usize, activation: i32): v128 {
  if (activation == RELU) return v128.and(x, f32x4.gt(v128.load(gate), f32x4.splat(0)));
  if (activation == TANH) {
    const h = v128.load(gate);
    return f32x4.mul(x, f32x4.sub(f32x4.splat(1), f32x4.mul(h, h)));
  }
  return x;
}

/** out[n] = the sum of the rows of X[m×n], from the first to the last: the gradient of a bias. */
export function columnSums(x: usize, out: usize, m: i32, n: i32): void {
  const line = (<usize>n) << 2;
  for (let j: usize = 0; j < line; j += 16) {
    let sum = f32x4.splat(0);
    let at = x + j;
    for (let i: i32 = 0; i < m; i++) {
      sum = f32x4.add(sum, v128.load(at));
      at += line;
    }
    v128.store(out + j, sum);
  }
}
