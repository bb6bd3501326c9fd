/** Steps of an optimizer on one long vector of parameters; `count` is a multiple of 4. */
import { sumLanes } from "./functions";

/** Adam with decoupled weight decay (Loshchilov and Hutter, 2019). `correct1` and `correct2` are 1/(1 − βᵗ). */
export function adamW(
  weights: usize,
  gradient: usize,
  mean: usize,
  square: usize,
  count: i32,
  rate: f32,
  beta1: f32,
  beta2: f32,
  correct1: f32,
  correct2: f32,
  epsilon: f32,
  decay: f32,
): void {
  const b1 = f32x4.splat(beta1);
  const b2 = f32x4.splat(beta2);
  const a1 = f32x4.splat(1 - beta1);
  const a2 = f32x4.splat(1 - beta2);
  const k1 = f32x4.splat(correct1 * rate);
  const k2 = f32x4.splat(correct2);
  const eps = f32x4.splat(epsilon);
  const keep = f32x4.splat(1 - rate * decay);
  for (let at: usize = 0, end = (<usize>count) << 2; at < end; at += 16) {
    const g = v128.load(gradient + at);
    const m = f32x4.add(f32x4.mul(b1, v128.load(mean + at)), f32x4.mul(a1, g));
    const s = f32x4.add(f32x4.mul(b2, v128.load(square + at)), f32x4.mul(a2, f32x4.mul(g, g)));
    v128.store(mean + at, m);
    v128.store(square + at, s);
    const step = f32x4.div(f32x4.mul(k1, m), f32x4.add(f32x4.sqrt(f32x4.mul(k2, s)), eps));
    v128.store(weights + at, f32x4.sub(f32x4.mul(keep, v128.load(weights + at)), step));
  }
}

/** Σ x², summed in four lanes. */
export function squaredNorm(x: usize, count: i32): f32 {
  let sum = f32x4.splat(0);
  for (let at = x, end = x + ((<usize>count) << 2); at < end; at += 16) {
    const v = v128.load(at);
    sum = f32x4.add(sum, f32x4.mul(v, v));
  }
  return sumLanes(sum);
}

export function scale(x: usize, count: i32, factor: f32): void {
  const by = f32x4.splat(factor);
  for (let at = x, end = x + ((<usize>count) << 2); at < end; at += 16)
    v128.store(at, f32x4.mul(v128.load(at), by));
}

/** target = (1 − τ)·target + τ·online; τ = 1 is a copy. */
export function follow(target: usize, online: usize, count: i32, tau: f32): void {
  const old = f32x4.splat(1 - tau);
  const fresh = f32x4.splat(tau);
  for (let at: usize = 0, end = (<usize>count) << 2; at < end; at += 16)
    v128.store(
      target + at,
      f32x4.add(f32x4.mul(old, v128.load(target + at)), f32x4.mul(fresh, v128.load(online + at))),
    );
}
