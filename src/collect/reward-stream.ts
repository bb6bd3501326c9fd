/** What a rollout earned, as the reward of its streams: the rule of late feedback, applied when it is sealed.
 *  In: a stream as recorded, what the scores add up to. Out: the stream, labelled. One that has rewards of its own keeps
 *  them; without a score that counts it stays unlabelled. Pure. */
import type { RecordedRollout } from "../contract/index.ts";

type RecordedStream = RecordedRollout["streams"][number];

/** The last choice gets the reward, the others 0. */
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
