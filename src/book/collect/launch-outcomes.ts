/** Reads the outcomes of the samples of an experiment.
 *  In: an open book and the experiment's name, or the results of a launch. Out: one outcome for each sample. A sample
 *  that was run again has its last outcome, and a task that was launched again has the outcomes of the last launch.
 *  Writes nothing. */
import { type Id, parseId } from "../../base/index.ts";
import {
  type FailedSample,
  type LaunchOptions,
  type RepeatedSample,
  type RolloutResult,
  totalOf,
} from "../../collect/rollout/index.ts";
import {
  type Ending,
  type FailureOwner,
  Receipt,
  RolloutContent,
  RolloutEnvelope,
} from "../../contract/index.ts";
import { readRecord } from "../../store/index.ts";
import type { OpenBook } from "../open/index.ts";
import { listRollouts } from "../rollouts/index.ts";

export interface LaunchOutcome {
  readonly task: string;
  readonly taskTitle: string | null;
  readonly group: string | null;
  readonly sample: number;
  /** Null if unlabelled. */
  readonly reward: number | null;
  readonly ending: Ending;
  /** Number of times that the sample was run. */
  readonly results: number;
}

/** Outcome from the book, with the rollout that can be read there. */
interface RecordedOutcome extends LaunchOutcome {
  readonly rollout: RepeatedSample;
}

/** Outcomes of the last launch of each task. A launch with other options, or another agent, runs every task again. */
export async function experimentOutcomes(book: OpenBook, experiment: string): Promise<RecordedOutcome[]> {
  const { outcomes, launchOf } = await everyOutcome(book, experiment);
  const last = new Map<string, string>();
  // The outcome of the rollout that ended last comes first.
  for (const { task, group } of outcomes) if (!last.has(task)) last.set(task, launchOf(group));
  return outcomes.filter(({ task, group }) => launchOf(group) === last.get(task));
}

interface EveryOutcome {
  readonly outcomes: readonly RecordedOutcome[];
  /** Groups of one launch have one name. */
  readonly launchOf: (group: string | null) => string;
}

/** Outcomes of all rollouts that `launch` made. Abandoned attempts have no upload receipt and are not results. No record
 *  names the launch of a group. But workers are processes, so groups that share one belong together: equal lines of a
 *  file are several groups of one launch. */
async function everyOutcome(book: OpenBook, experiment: string): Promise<EveryOutcome> {
  const index = await book.index();
  const outcomes = new Map<string, RecordedOutcome>();
  const launches = new DisjointSets();
  // The rollout that ended last comes first.
  for (const { rolloutId, content, envelopes, task, taskTitle, group } of await listRollouts(book, {
    experiment,
  })) {
    const { assignment, ending, scores } = await readRecord(book.store, RolloutContent, content);
    if (assignment === undefined || index.about([content], [Receipt.kind]).length === 0) continue;
    const { sample } = assignment;
    const key = sampleKey({ task, group, sample });
    const known = outcomes.get(key);
    const rollout = { id: parseId(rolloutId), envelope: envelopes[0]! };
    const outcome = { task, taskTitle, group, sample, reward: totalOf(scores), ending, rollout };
    outcomes.set(key, { ...(known ?? outcome), results: (known?.results ?? 0) + 1 });
    const { worker } = await readRecord(book.store, RolloutEnvelope, rollout.envelope);
    launches.join(`group ${group}`, `worker ${worker}`);
  }
  return { outcomes: [...outcomes.values()], launchOf: (group) => launches.rootOf(`group ${group}`) };
}

/** Sets of names, joined pair by pair. */
class DisjointSets {
  readonly #parents = new Map<string, string>();

  join(a: string, b: string): void {
    this.#parents.set(this.rootOf(a), this.rootOf(b));
  }

  rootOf(name: string): string {
    let root = name;
    for (
      let next = this.#parents.get(root);
      next !== undefined && next !== root;
      next = this.#parents.get(root)
    )
      root = next;
    this.#parents.set(name, root);
    return root;
  }
}

/** Finds the last result of a sample that was run again. Reads the experiment on the first call. */
export function rerunsOf(book: OpenBook, experiment: string): NonNullable<LaunchOptions["rerun"]> {
  let known: Promise<Map<string, RepeatedSample>> | undefined;
  const read = async () => {
    const { outcomes } = await everyOutcome(book, experiment);
    const again = outcomes.filter(({ results }) => results > 1);
    return new Map(again.map((each) => [sampleKey(each), each.rollout]));
  };
  return async (planned) => {
    known ??= read();
    return (await known).get(sampleKey(planned));
  };
}

function sampleKey({ task, group, sample }: Pick<LaunchOutcome, "task" | "group" | "sample">): string {
  return JSON.stringify([task, group, sample]);
}

export function outcomeOf(result: RolloutResult): LaunchOutcome {
  const { task, taskTitle, group, sample } = result;
  const common = { task, taskTitle, group, sample, results: 1 };
  if (result.state === "sealed") return { ...common, reward: result.reward, ending: result.ending };
  const ending: Ending = { kind: "failed", owner: "infrastructure", message: result.reason };
  return { ...common, reward: null, ending };
}

/** Samples whose last result is a failure, by task; only failures of `owner` if given. */
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
