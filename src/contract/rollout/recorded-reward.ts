/** The reward that a rollout was sealed with. Later feedback is not part of it. Pure. */
import type { RolloutContent } from "./rollout.ts";

/** The weighted sum of the scores. Without a score of nonzero weight: the sum over the first step stream whose steps
 *  all have a reward, as in an imported decision. Null: unlabelled. */
export function recordedReward({
  scores,
  streams,
}: Pick<RolloutContent, "scores" | "streams">): number | null {
  // Scores of weight 0 are kept but do not count. A rollout with only such scores is unlabelled; its reward is not 0.
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
