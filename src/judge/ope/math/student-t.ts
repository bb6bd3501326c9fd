/** Student's t and normal distributions from the incomplete beta function: no table, no Math.exp. */
import { exp, log } from "../../../base/index.ts";

/** P(T ≤ t) with `freedom` degrees of freedom. */
export function studentCdf(t: number, freedom: number): number {
  const tail = 0.5 * incompleteBeta(freedom / (freedom + t * t), freedom / 2, 0.5);
  return t > 0 ? 1 - tail : tail;
}

/** The t with P(T ≤ t) = p, by bisection. The bracket doubles until it contains t. */
export function studentQuantile(p: number, freedom: number): number {
  if (p === 0.5) return 0;
  if (p < 0.5) return -studentQuantile(1 - p, freedom);
  let low = 0;
  let high = 2;
  while (studentCdf(high, freedom) < p) {
    low = high;
    high *= 2;
  }
  for (let i = 0; i < 200; i++) {
    const middle = low + (high - low) / 2;
    if (middle === low || middle === high) break;
    if (studentCdf(middle, freedom) < p) low = middle;
    else high = middle;
  }
  return high;
}

/** I_x(a, b), by the continued fraction (DLMF 8.17.22), evaluated by Lentz's method. */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a);
  const front = exp(logGammaRatio(a, b) + a * log(x) + b * log(1 - x)) / a;
  return front * continuedFraction(x, a, b);
}

function continuedFraction(x: number, a: number, b: number): number {
  const tiny = 1e-300;
  const guard = (value: number) => (Math.abs(value) < tiny ? tiny : value);
  let c = 1;
  let d = 1 / guard(1 - ((a + b) * x) / (a + 1));
  let fraction = d;
  for (let m = 1; m <= 100_000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guard(1 + even * d);
    c = guard(1 + even / c);
    fraction *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guard(1 + odd * d);
    c = guard(1 + odd / c);
    fraction *= d * c;
    if (Math.abs(d * c - 1) < 1e-16) break;
  }
  return fraction;
}

/** log Γ(a+b) − log Γ(a) − log Γ(b). */
function logGammaRatio(a: number, b: number): number {
  return logGamma(a + b) - logGamma(a) - logGamma(b);
}

/** Stirling's series after shifting the argument above 15, where it is exact to the last digits. */
function logGamma(x: number): number {
  let shift = 0;
  while (x < 15) {
    shift += log(x);
    x += 1;
  }
  const z = 1 / (x * x);
  const series = (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188)))) / x;
  return (x - 0.5) * log(x) - x + 0.9189385332046728 + series - shift;
}
