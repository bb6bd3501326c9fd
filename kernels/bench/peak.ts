/** The multiply-add peak of plain SIMD: twelve independent sums in registers, nothing from memory. For benchmarks only. */
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
  }
  const s0 = f32x4.add(f32x4.add(c0, c1), f32x4.add(c2, c3));
  const s1 = f32x4.add(f32x4.add(c4, c5), f32x4.add(c6, c7));
  return f32x4.extract_lane(f32x4.add(f32x4.add(s0, s1), f32x4.add(c8, c9)), 0);
}
