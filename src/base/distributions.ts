/** Draws from common distributions. Exact arithmetic and an Rng argument: one seed gives one sequence on every
 *  engine. */
import { exp, log } from "./exact-math.ts";
import type { Rng } from "./rng.ts";

/** A standard normal draw, by Marsaglia's polar method. Discards the second value of the pair, so there is no hidden
 *  state. */
export function drawNormal(rng: Rng): number {
  for (;;) {
    const u = 2 * rng.float() - 1;
    const v = 2 * rng.float() - 1;
    const s = u * u + v * v;
    if (s > 0 && s < 1) return u * Math.sqrt((-2 * log(s)) / s);
  }
}

/** A Gamma(shape, 1) draw, by Marsaglia and Tsang (2000). Shapes below 1 are boosted by a power of a uniform. */
export function drawGamma(shape: number, rng: Rng): number {
  if (shape < 1) return drawGamma(shape + 1, rng) * exp(log(1 - rng.float()) / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = drawNormal(rng);
    const root = 1 + c * x;
    if (root <= 0) continue;
    const v = root * root * root;
    if (log(1 - rng.float()) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
  }
}

export function drawBeta(alpha: number, beta: number, rng: Rng): number {
  const a = drawGamma(alpha, rng);
  return a / (a + drawGamma(beta, rng));
}
