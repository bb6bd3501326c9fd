/** Late feedback as rewards: which value counts, and on which sample it lands. Pure. */
import type { Digest } from "../../base/digest.ts";
import type { Feedback } from "../../contract/feedback.ts";
import type { Sealed } from "../../contract/record.ts";
import type { Stream } from "../../contract/stream.ts";

/** `call` undefined: the outcome of the whole rollout. */
export interface LateReward {
  call: number | undefined;
  value: number;
}

/** Of one name, by rollout. A repeated idempotency key counts once (the first); among keys the latest counts. */
export function lateRewards(
  feedback: readonly Sealed<Feedback>[],
  name: string | undefined,
): Map<Digest, LateReward[]> {
  const byRollout = new Map<Digest, Map<number | undefined, LateReward>>();
  const keys = new Set<string>();
  const ordered = feedback
    .filter(({ record }) => record.name === name)
    .sort((a, b) => a.record.atMs - b.record.atMs || (a.digest < b.digest ? -1 : 1));
  for (const { record } of ordered) {
    const key = JSON.stringify([record.subject, record.call ?? null, record.idempotencyKey]);
    if (keys.has(key)) continue;
    keys.add(key);
    const rewards = byRollout.get(record.subject) ?? new Map();
    rewards.set(record.call, { call: record.call, value: record.value });
    byRollout.set(record.subject, rewards);
  }
  return new Map([...byRollout].map(([subject, rewards]) => [subject, [...rewards.values()]]));
}

/** Index of the sample a late reward lands on: the last one of its call, or of the stream. -1: the call is not in it. */
export function landingIndex(item: Stream, mask: Uint8Array | undefined, reward: LateReward): number {
  if (item.level === "step") {
    return reward.call === undefined
      ? item.steps.length - 1
      : item.steps.findLastIndex((each) => each.call === reward.call);
  }
  // A call may have several segments: a hot swap in its midst begins a new one.
  const parts =
    reward.call === undefined
      ? [{ start: 0, end: item.length }]
      : item.segments.filter((each) => each.call === reward.call);
  for (const { start, end } of parts.reverse())
    for (let i = end - 1; i >= start; i--) if (mask![i] === 1) return i;
  return -1;
}
