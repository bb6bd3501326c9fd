/** The reward that a rollout was sealed with. Pure. Feedback that came later is not part of it. */
import type { RolloutContent } from "./rollout.ts";

/** The weighted sum of its scores; without a score that counts, the sum of the first step stream whose every step has a
 *  reward, as in an imported decision. Null: unlabelled. */
export function recordedReward({
  scores,
  streams,
}: Pick<RolloutContent, "scores" | "streams">): number | null {
  // Scores of weight 0 are kept and do not count: with no other a rollout is unlabelled, not worth 0.
  const counted = scores.filter(({ weight }) => weight !== 0);
  if (counted.length > 0) return counted.reduce((sum, each) => sum + each.value * each.weight, 0);
  for (const stream of streams) {
    if (stream.level !== "step") continue;
    const rewards = stream.steps.flatMap(({ reward }) => (reward === null ? [] : [reward]));
    if (rewards.length > 0 && rewards.length === stream.steps.length)
      return rewards.reduce((sum, each) => sum + each, 0);
  }
  return null;
}
