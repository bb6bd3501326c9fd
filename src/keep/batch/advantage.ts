/** Group advantages. A baseline counts each rollout once, even if it was split into several rows. Pure. */
import type { AdvantageMethod } from "../../contract/index.ts";

export interface GroupBaseline {
  rollouts: number;
  /** Mean reward over the rollouts of the group. */
  mean: number;
  /** Population standard deviation. */
  spread: number;
}

/** Keeps mean-std finite in a group of equal rewards: all advantages are then 0. */
const EPSILON = 1e-6;

export function baselineOf(rewards: readonly number[]): GroupBaseline {
  const rollouts = rewards.length;
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rollouts;
  const variance = rewards.reduce((sum, reward) => sum + (reward - mean) * (reward - mean), 0) / rollouts;
  return { rollouts, mean, spread: Math.sqrt(variance) };
}

/** Advantage of a row with this reward, in a rollout whose own mean reward is `own`. */
export function advantageOf(
  method: Extract<AdvantageMethod, "mean-std" | "leave-one-out">,
  reward: number,
  own: number,
  group: GroupBaseline,
): number {
  switch (method) {
    case "mean-std":
      return (reward - group.mean) / (group.spread + EPSILON);
    case "leave-one-out":
      // A rollout that is alone in its group has no baseline.
      return group.rollouts < 2 ? 0 : reward - (group.mean * group.rollouts - own) / (group.rollouts - 1);
    default:
      return method satisfies never;
  }
}
