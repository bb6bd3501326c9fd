/** Rewards that came after the seal, in the rows of a store: the rule is that of batches.
 *  In: a chain as sealed, late feedback of one name. Out: the same chain, labelled, or as it was. A chain that has all its
 *  rewards keeps them; one that lacks any takes what landed on its samples, and 0 elsewhere. The sealed record stays. */
import type { Digest } from "../../base/digest.ts";
import { type LateReward, landingIndex } from "../admit/labels.ts";
import type { SealedChain } from "./chain-rows.ts";

export interface LateFeedback {
  readonly name: string;
  /** By rollout content, as `lateRewards` gives them. */
  readonly rewards: ReadonlyMap<Digest, readonly LateReward[]>;
}

export function labelLate(chain: SealedChain, feedback: LateFeedback | undefined): SealedChain {
  const late = feedback?.rewards.get(chain.digest);
  if (feedback === undefined || late === undefined || isLabelled(chain)) return chain;
  const stream = chain.content.streams[chain.streamIndex]!;
  const length = stream.level === "step" ? stream.steps.length : stream.length;
  const rewards = new Float64Array(length);
  let landed = false;
  for (const each of late) {
    const at = landingIndex(stream, chain.columns?.mask, each);
    if (at < 0) continue;
    rewards[at] = rewards[at]! + each.value;
    landed = true;
  }
  if (!landed) return chain;
  if (stream.level === "token")
    return {
      ...chain,
      feedback: feedback.name,
      columns: { ...chain.columns!, rewards: Float32Array.from(rewards) },
    };
  const labelled = { ...stream, steps: stream.steps.map((step, i) => ({ ...step, reward: rewards[i]! })) };
  const streams = chain.content.streams.map((each, i) => (i === chain.streamIndex ? labelled : each));
  return { ...chain, feedback: feedback.name, content: { ...chain.content, streams } };
}

function isLabelled({ content, streamIndex, columns }: SealedChain): boolean {
  const stream = content.streams[streamIndex]!;
  return stream.level === "step"
    ? stream.steps.every((step) => step.reward !== null)
    : columns?.rewards !== undefined;
}
