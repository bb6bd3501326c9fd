/** Converts the decisions of a sealed rollout to rows: observed context, candidates, choice and outcome.
 *  In: a content, one of its step streams, its labels. Out: one row per step. Facts that were not recorded stay
 *  missing. */
import { type ReadBlob, type RolloutContent, type StepStream, taskOf } from "../../contract/index.ts";
import { decisionId, sessionOf } from "../../keep/admit/index.ts";
import type { LoggedRow } from "../../learn/index.ts";
import { seenBy } from "../rollouts/index.ts";
import { stepCosts } from "./step-costs.ts";

interface LabelledStream {
  readonly content: RolloutContent;
  /** Index of a step stream. */
  readonly stream: number;
  readonly startedAtMs: number;
  /** One reward per step; null if unlabelled. */
  readonly rewards: readonly (number | null)[];
  /** `recorded`, or `feedback:NAME`. */
  readonly rewardFrom: string;
}

export async function decisionsOf(read: ReadBlob, from: LabelledStream): Promise<LoggedRow[]> {
  const { content, rewards, rewardFrom } = from;
  const stream = content.streams[from.stream] as StepStream;
  const last = stream.steps.length - 1;
  const scores = content.scores.map(({ name, value, weight }) => [name, { value, weight }]);
  const costOf = stepCosts(read, content, stream);
  const rows: LoggedRow[] = [];
  for (const [i, step] of stream.steps.entries()) {
    const seen = await seenBy(read, content, step);
    const costUsd = await costOf(i, seen.costUsd);
    rows.push({
      id: decisionId(content.rolloutId, from.stream, i),
      chain: decisionId(content.rolloutId, from.stream, 0),
      task: taskOf(content),
      session: sessionOf(content),
      family: stream.family,
      atMs: from.startedAtMs,
      source: content.dataSource,
      context: { prompt: seen.prompt, fields: seen.fields },
      candidates: step.candidates.map(({ id, selectable, reasons, probability, seen: shown }) => ({
        id,
        selectable,
        reasons,
        probability,
        features: shown ?? seen.features[id] ?? {},
      })),
      chosen: step.chosen,
      propensity: step.candidates[step.chosen]!.probability ?? step.propensity ?? null,
      reward: rewards[i]!,
      terminal: i === last && content.ending.kind === "terminal",
      // Scores belong to the whole rollout, so they are attached to its last decision.
      terms: i === last ? Object.fromEntries(scores) : {},
      ...(costUsd === undefined ? {} : { costUsd }),
      rewardFrom,
    });
  }
  return rows;
}
