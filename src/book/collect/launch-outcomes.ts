/** What became of the samples of an experiment. In: an open book and the name, or the results of a launch. Out: one outcome
 *  for each sample: the last one, where it was run again. Writes nothing. */
import type { Id } from "../../base/index.ts";
import { type FailedSample, type RolloutResult, totalOf } from "../../collect/rollout/index.ts";
import { type Ending, type FailureOwner, Receipt, RolloutContent } from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import { listRollouts } from "../rollouts/index.ts";

export interface LaunchOutcome {
  readonly task: string;
  readonly taskTitle: string | null;
  readonly group: string | null;
  readonly sample: number;
  /** Null: unlabelled. */
  readonly reward: number | null;
  readonly ending: Ending;
  /** How often the sample was run. */
  readonly results: number;
}

/** Of rollouts that `launch` made. Attempts that were given up have no receipt of an upload and are no results. */
export async function experimentOutcomes(book: OpenBook, experiment: string): Promise<LaunchOutcome[]> {
  const index = await book.index();
  const outcomes = new Map<string, LaunchOutcome>();
  // The one that ended last comes first.
  for (const { content, task, taskTitle, group } of await listRollouts(book, { experiment })) {
    const { assignment, ending, scores } = await readRecord(book.store, RolloutContent, content);
    if (assignment === undefined || index.about([content], [Receipt.kind]).length === 0) continue;
    const key = JSON.stringify([task, group, assignment.sample]);
    const known = outcomes.get(key);
    const outcome = { task, taskTitle, group, sample: assignment.sample, reward: totalOf(scores), ending };
    outcomes.set(key, { ...(known ?? outcome), results: (known?.results ?? 0) + 1 });
  }
  return [...outcomes.values()];
}

export function outcomeOf(result: RolloutResult): LaunchOutcome {
  const { task, taskTitle, group, sample } = result;
  const common = { task, taskTitle, group, sample, results: 1 };
  if (result.state === "sealed") return { ...common, reward: result.reward, ending: result.ending };
  const ending: Ending = { kind: "failed", owner: "infrastructure", message: result.reason };
  return { ...common, reward: null, ending };
}

/** The samples whose last result is a failure, by task; of one owner if it is named. */
export function failedSamples(
  outcomes: readonly LaunchOutcome[],
  owner?: FailureOwner,
): (task: Id) => readonly FailedSample[] {
  const failed = new Map<string, FailedSample[]>();
  for (const { task, group, sample, ending, results } of outcomes) {
    if (ending.kind !== "failed" || (owner !== undefined && ending.owner !== owner)) continue;
    const known = failed.get(task) ?? [];
    failed.set(task, [...known, { group: group as Id, sample, results }]);
  }
  return (task) => failed.get(task) ?? [];
}
