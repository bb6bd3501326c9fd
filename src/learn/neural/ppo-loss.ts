/** The clipped surrogate of PPO and its gradient by the logits, with an entropy bonus.
 *  Pure arithmetic on probabilities. */
import { exp, log } from "../../base/index.ts";

interface SlopeParts {
  readonly order: readonly number[];
  readonly scaled: readonly number[];
  readonly logp: Float64Array;
  readonly chosen: Int32Array;
  readonly wide: number;
  readonly arms: number;
  readonly clip: number;
  readonly entropy: number;
}

/** Overwrites `shares` with the gradient of (clipped surrogate − entropy bonus) by the logits. Returns that loss. */
export function policySlope(shares: Float32Array, parts: SlopeParts): number {
  const { order, scaled, logp, chosen, wide, arms, clip, entropy: weight } = parts;
  const count = order.length;
  let loss = 0;
  order.forEach((row, r) => {
    const at = r * wide;
    const a = chosen[row]!;
    const ratio = exp(log(Math.max(1e-30, shares[at + a]!)) - logp[row]!);
    const gain = scaled[r]!;
    const bounded = Math.min(1 + clip, Math.max(1 - clip, ratio));
    loss -= Math.min(ratio * gain, bounded * gain) / count;
    // The gradient is 0 if the minimum takes the clipped ratio.
    const pull = ratio * gain <= bounded * gain ? (ratio * gain) / count : 0;
    let entropy = 0;
    if (weight > 0)
      for (let j = 0; j < arms; j++)
        if (shares[at + j]! > 0) entropy -= shares[at + j]! * log(shares[at + j]!);
    loss -= (weight * entropy) / count;
    for (let j = 0; j < arms; j++) {
      const share = shares[at + j]!;
      const own = pull * (share - (j === a ? 1 : 0));
      const spread = weight > 0 && share > 0 ? (weight * share * (log(share) + entropy)) / count : 0;
      shares[at + j] = own + spread;
    }
  });
  return loss;
}

/** Values shifted and scaled to mean 0 and standard deviation 1. */
export function normalised(values: readonly number[]): number[] {
  const mean = values.reduce((sum, each) => sum + each, 0) / values.length;
  const square = values.reduce((sum, each) => sum + (each - mean) * (each - mean), 0);
  const deviation = Math.sqrt(square / Math.max(1, values.length - 1)) + 1e-8;
  return values.map((each) => (each - mean) / deviation);
}
