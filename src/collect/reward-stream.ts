/** Writes the score of a rollout into its streams when the rollout is sealed, by the rule of late feedback. In: a
 *  recorded stream, the sum of the scores. Out: the labelled stream. A stream that already has rewards keeps them.
 *  Without a score that counts, the stream stays unlabelled. Pure. */
import type { RecordedRollout } from "../contract/index.ts";

type RecordedStream = RecordedRollout["streams"][number];

/** The last choice gets the reward, all other choices get 0. */
export function rewardStream(stream: RecordedStream, reward: number | null): RecordedStream {
  if (reward === null) return stream;
  if (stream.level === "step") {
    if (stream.steps.some((step) => step.reward !== null)) return stream;
    const last = stream.steps.length - 1;
    return {
      ...stream,
      steps: stream.steps.map((step, i) => ({ ...step, reward: i === last ? reward : 0 })),
    };
  }
  if (stream.rewards !== undefined) return stream;
  const mask = Array.from(stream.ids, (_, i) => stream.mask?.[i] ?? 1);
  const last = mask.lastIndexOf(1);
  return { ...stream, rewards: mask.map((_, i) => (i === last ? reward : 0)) };
}
