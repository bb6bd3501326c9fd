/** The arithmetic peak of plain SIMD: independent chains of a multiply and an add on registers, without memory access.
 *  For benchmarks only. Each round has 13 products and 13 sums on 4 lanes. */
export function peak(rounds: i32): f32 {
  const a = f32x4.splat(0.999999);
  const b = f32x4.splat(1e-7);
  let c0 = f32x4.splat(1);
  let c1 = c0;
  let c2 = c0;
  let c3 = c0;
  let c4 = c0;
  let c5 = c0;
  let c6 = c0;
  let c7 = c0;
  let c8 = c0;
  let c9 = c0;
  let c10 = c0;
  let c11 = c0;
  let c12 = c0;
  for (let i: i32 = 0; i < rounds; i++) {
    c0 = f32x4.add(f32x4.mul(c0, a), b);
    c1 = f32x4.add(f32x4.mul(c1, a), b);
    c2 = f32x4.add(f32x4.mul(c2, a), b);
    c3 = f32x4.add(f32x4.mul(c3, a), b);
    c4 = f32x4.add(f32x4.mul(c4, a), b);
    c5 = f32x4.add(f32x4.mul(c5, a), b);
    c6 = f32x4.add(f32x4.mul(c6, a), b);
    c7 = f32x4.add(f32x4.mul(c7, a), b);
    c8 = f32x4.add(f32x4.mul(c8, a), b);
    c9 = f32x4.add(f32x4.mul(c9, a), b);
    c10 = f32x4.add(f32x4.mul(c10, a), b);
    c11 = f32x4.add(f32x4.mul(c11, a), b);
    c12 = f32x4.add(f32x4.mul(c12, a), b);
  }
  let sum = c0;
  sum = f32x4.add(sum, c1);
  sum = f32x4.add(sum, c2);
  sum = f32x4.add(sum, c3);
  sum = f32x4.add(sum, c4);
  sum = f32x4.add(sum, c5);
  sum = f32x4.add(sum, c6);
  sum = f32x4.add(sum, c7);
  sum = f32x4.add(sum, c8);
  sum = f32x4.add(sum, c9);
  sum = f32x4.add(sum, c10);
  sum = f32x4.add(sum, c11);
  sum = f32x4.add(sum, c12);
  return f32x4.extract_lane(sum, 0);
}
