/** One line of a list of rollouts, and which lines a query wants. Pure: the viewer's page runs it in a browser, too. */
import type { Digest } from "../../base/index.ts";
import type { Level } from "../../contract/index.ts";

export interface RolloutQuery {
  /** One of these contents. */
  readonly contents?: readonly Digest[] | undefined;
  /** With a stream of this policy family. */
  readonly family?: string | undefined;
  readonly group?: string | undefined;
  /** The id of the task, or part of its title in any case. */
  readonly task?: string | undefined;
  readonly experiment?: string | undefined;
  /** One of the models that were chosen. */
  readonly model?: string | undefined;
  /** terminal, truncated, cancelled, failed, or a failure of one owner: failed-provider. */
  readonly ending?: string | undefined;
  /** Labelled, and at least this. */
  readonly minScore?: number | undefined;
  /** Ended at this time or later. */
  readonly sinceMs?: number | undefined;
  readonly limit?: number | undefined;
}

export interface RolloutRow {
  readonly rolloutId: string;
  /** The digest of its content. */
  readonly content: Digest;
  /** One for each time it was run. */
  readonly envelopes: readonly Digest[];
  /** Of the last run. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** The launch it was run for. */
  readonly experiment: string | null;
  readonly environment: string;
  readonly task: string;
  /** What people call the task, where its record is in the book. */
  readonly taskTitle: string | null;
  readonly group: string | null;
  readonly dataSource: "real" | "synthetic";
  readonly ending: string;
  /** It was given up, killed or interrupted, and a later run of the same rollout followed: it is no result. */
  readonly triedAgain: boolean;
  readonly families: readonly string[];
  readonly levels: readonly Level[];
  /** What was chosen, the first few. */
  readonly models: readonly string[];
  readonly samples: number;
  readonly calls: number;
  /** Null: unlabelled. */
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
