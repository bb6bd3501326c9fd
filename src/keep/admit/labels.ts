/** The only rule of labels: the rewards of a stream per token or step, and their source. Pure. A stream that was sealed
 *  with all its rewards keeps them. A stream that lacks any reward takes the late feedback on its samples, with 0
 *  elsewhere. Without either the stream is unlabelled, which never means 0. */
import type { Digest } from "../../base/index.ts";
import type {
  Feedback,
  Sealed,
  StepStream,
  Stream,
  TokenColumns,
  TokenStream,
} from "../../contract/index.ts";
import { inOrder } from "./read-sources.ts";

/** `call` undefined: the outcome of the whole rollout. */
export interface LateReward {
  call: number | undefined;
  value: number;
}

export interface StreamLabels<Values extends ArrayLike<number> = ArrayLike<number>> {
  readonly from: "recorded" | "late";
  /** One reward per token or step. */
  readonly rewards: Values;
  readonly total: number;
}

/** Feedback that counts, by time: the first record with an idempotency key. A key has two records if a command and a
 *  running gateway each wrote one, because neither sees the other's. */
export function countedFeedback<T extends Pick<Sealed<Feedback>, "digest" | "record">>(
  feedback: readonly T[],
): T[] {
  const keys = new Set<string>();
  return inOrder(feedback).filter(({ record: { subject, call, name, idempotencyKey } }) => {
    const key = JSON.stringify([subject, call ?? null, name, idempotencyKey]);
    if (keys.has(key)) return false;
    keys.add(key);
    return true;
  });
}

/** Late rewards of one name, by rollout; among keys the latest counts. */
export function lateRewards(
  feedback: readonly Sealed<Feedback>[],
  name: string | undefined,
): Map<Digest, LateReward[]> {
  const byRollout = new Map<Digest, Map<number | undefined, LateReward>>();
  for (const { record } of countedFeedback(feedback.filter((each) => each.record.name === name))) {
    const rewards = byRollout.get(record.subject) ?? new Map();
    rewards.set(record.call, { call: record.call, value: record.value });
    byRollout.set(record.subject, rewards);
  }
  return new Map([...byRollout].map(([subject, rewards]) => [subject, [...rewards.values()]]));
}

export function labelSteps(
  stream: StepStream,
  late: readonly LateReward[],
): StreamLabels<number[]> | undefined {
  const { steps } = stream;
  if (steps.every((each) => each.reward !== null)) {
    const rewards = steps.map((each) => each.reward!);
    return { from: "recorded", rewards, total: sum(rewards) };
  }
  return labelLate(stream, { late, rewards: steps.map(() => 0) });
}

/** `mask` is needed only if the rewards are not recorded. */
export function labelTokens(
  stream: TokenStream,
  { rewards, mask }: Partial<Pick<TokenColumns, "rewards" | "mask">>,
  late: readonly LateReward[],
): StreamLabels<Float32Array> | undefined {
  if (rewards !== undefined) return { from: "recorded", rewards, total: sum(rewards) };
  if (late.length === 0) return undefined;
  return labelLate(stream, { late, mask: mask!, rewards: new Float32Array(stream.length) });
}

function labelLate<Values extends number[] | Float32Array>(
  stream: Stream,
  { late, mask, rewards }: { late: readonly LateReward[]; mask?: Uint8Array; rewards: Values },
): StreamLabels<Values> | undefined {
  let landed = false;
  let total = 0;
  for (const each of late) {
    const at = landingIndex(stream, mask, each);
    if (at < 0) continue;
    landed = true;
    total += each.value;
    rewards[at] = rewards[at]! + each.value;
  }
  return landed ? { from: "late", rewards, total } : undefined;
}

/** Index of the sample that gets a late reward: the last one of its call, or of the stream. -1: the call is not in the
 *  stream. */
function landingIndex(item: Stream, mask: Uint8Array | undefined, reward: LateReward): number {
  if (item.level === "step") {
    return reward.call === undefined
      ? item.steps.length - 1
      : item.steps.findLastIndex((each) => each.call === reward.call);
  }
  // A call may have several segments: a hot swap during the call begins a new one.
  const parts =
    reward.call === undefined
      ? [{ start: 0, end: item.length }]
      : item.segments.filter((each) => each.call === reward.call);
  for (const { start, end } of parts.reverse())
    for (let i = end - 1; i >= start; i--) if (mask![i] === 1) return i;
  return -1;
}

function sum(values: Float32Array | readonly number[]): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}
