/** Defines one line of a list of rollouts, and the query that selects lines. Pure: the viewer's page also runs it in a
 *  browser. */
import type { Digest } from "../../base/index.ts";
import type { Level } from "../../contract/index.ts";

export interface RolloutQuery {
  /** Rollouts with one of these contents. */
  readonly contents?: readonly Digest[] | undefined;
  /** Rollouts with a stream of this policy family. */
  readonly family?: string | undefined;
  readonly group?: string | undefined;
  /** Id of the task, or part of its title, ignoring case. */
  readonly task?: string | undefined;
  readonly experiment?: string | undefined;
  /** One of the chosen models. */
  readonly model?: string | undefined;
  /** terminal, truncated, cancelled, failed, or a failure of one owner such as failed-provider. */
  readonly ending?: string | undefined;
  /** Minimum score; excludes unlabelled rollouts. */
  readonly minScore?: number | undefined;
  /** Earliest end time. */
  readonly sinceMs?: number | undefined;
  readonly limit?: number | undefined;
}

export interface RolloutRow {
  readonly rolloutId: string;
  /** Digest of the content. */
  readonly content: Digest;
  /** One envelope per run. */
  readonly envelopes: readonly Digest[];
  /** Start of the last run. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** Experiment of the launch that ran it. */
  readonly experiment: string | null;
  readonly environment: string;
  readonly task: string;
  /** Title of the task, if its record is in the book. */
  readonly taskTitle: string | null;
  readonly group: string | null;
  readonly dataSource: "real" | "synthetic";
  readonly ending: string;
  /** True if the run was abandoned, killed or interrupted, and a later run of the same rollout followed. Such a run is
   *  no result. */
  readonly triedAgain: boolean;
  readonly families: readonly string[];
  readonly levels: readonly Level[];
  /** Chosen models in the order of their first choice; without choices, the revisions that sampled the tokens. */
  readonly models: readonly string[];
  readonly samples: number;
  readonly calls: number;
  /** Null if unlabelled. */
  readonly score: number | null;
}

export function matchesQuery(row: RolloutRow, query: RolloutQuery): boolean {
  const { contents, family, group, task, experiment, model, ending, minScore, sinceMs } = query;
  return (
    (contents === undefined || contents.includes(row.content)) &&
    (family === undefined || row.families.includes(family)) &&
    (group === undefined || row.group === group) &&
    (task === undefined || row.task === task || isIn(task, row.taskTitle)) &&
    (experiment === undefined || row.experiment === experiment) &&
    (model === undefined || row.models.includes(model)) &&
    (ending === undefined || row.ending === ending || row.ending.startsWith(`${ending}-`)) &&
    (minScore === undefined || (row.score !== null && row.score >= minScore)) &&
    (sinceMs === undefined || row.endedAtMs >= sinceMs)
  );
}

function isIn(part: string, text: string | null): boolean {
  return text?.toLowerCase().includes(part.toLowerCase()) === true;
}
