/** Applies late rewards to the rows of a store, by the same rule as batches.
 *  In: a chain as sealed, and its late feedback. Out: the same chain, labelled if possible. Does not change the sealed
 *  record. */
import type { Digest } from "../../../base/index.ts";
import { type LateReward, labelSteps, labelTokens } from "../../admit/index.ts";
import type { SealedChain } from "./chain-rows.ts";

export interface LateFeedback {
  readonly name: string;
  /** By rollout content, as `lateRewards` returns them. */
  readonly rewards: ReadonlyMap<Digest, readonly LateReward[]>;
}

export function labelChain(chain: SealedChain, feedback: LateFeedback | undefined): SealedChain {
  const late = feedback?.rewards.get(chain.digest);
  if (feedback === undefined || late === undefined) return chain;
  const { name } = feedback;
  const stream = chain.content.streams[chain.streamIndex]!;
  if (stream.level === "token") {
    const labels = labelTokens(stream, chain.columns!, late);
    if (labels?.from !== "late") return chain;
    return { ...chain, feedback: name, columns: { ...chain.columns!, rewards: labels.rewards } };
  }
  const labels = labelSteps(stream, late);
  if (labels?.from !== "late") return chain;
  const steps = stream.steps.map((step, i) => ({ ...step, reward: labels.rewards[i]! }));
  const streams = chain.content.streams.map((each, i) =>
    i === chain.streamIndex ? { ...stream, steps } : each,
  );
  return { ...chain, feedback: name, content: { ...chain.content, streams } };
}
