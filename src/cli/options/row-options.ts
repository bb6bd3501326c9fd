/** Defines the flags that select decisions: shared by `data`, `reward`, `train`, `evaluate` and `gate`. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseTime } from "../../base/index.ts";
import {
  type DatasetSource,
  type DecisionRequest,
  type DecisionSource,
  wrongUsage,
} from "../../book/decisions/index.ts";
import type { Io } from "../io.ts";
import { type BookFlags, withBook } from "../with-book.ts";

export interface RowFlags extends BookFlags {
  data?: string;
  replay?: string;
  family?: string;
  exp?: string;
  session?: string;
  dataSource?: "real" | "synthetic";
  since?: number;
  until?: number;
  feedback?: string;
}

const DEFAULT_FAMILY = {
  one: "the only one with a choice of several candidates",
  trained:
    "the family that the checkpoint was trained on, if it was trained from the book; else the only one with a choice of several candidates",
  all: "all",
} as const;

/** `families`: training takes one family; a judge takes the family of the checkpoint; views take all families. */
export function addRowOptions(
  command: Command,
  { data, families = "one" }: { data: boolean; families?: keyof typeof DEFAULT_FAMILY },
): Command {
  command.optionsGroup("Decisions to use:");
  const each = DEFAULT_FAMILY[families];
  if (data)
    command
      .option(
        "--data <file>",
        "a routing dataset, as `data export` or `data import --out` wrote it (default: the admitted decisions of the book)",
      )
      .option(
        "--replay <store>",
        "a replay store, as `replay write` wrote it, instead of --data or the book. It holds no prompts: for policies that do not read them",
      );
  return command
    .option(
      "--family <family>",
      `only this policy family, the name that the log gives the policy that chose (default: ${each})`,
    )
    .option(
      "--exp <name>",
      "only rollouts of this experiment of the book: a name in the column EXPERIMENT of `artifact ls` (default: all)",
    )
    .option(
      "--session <id>",
      "only rollouts of this session. The session of a rollout is its group; without a group, its id (default: all)",
    )
    .addOption(
      new Option("--data-source <source>", "only this source (default: both)").choices(["real", "synthetic"]),
    )
    .option("--since <date>", "only from this date on, in ISO 8601 (default: no limit)", toTime)
    .option("--until <date>", "only before this date, in ISO 8601 (default: no limit)", toTime)
    .option(
      "--feedback <name>",
      "where a reward is missing, use late feedback of this name, as `rollbook feedback --name` gave it (default: none)",
    );
}

export function requestOf(flags: RowFlags): DecisionRequest {
  const { family, exp, session, dataSource, since, until, feedback } = flags;
  return { family, experiment: exp, session, dataSource, feedback, sinceMs: since, untilMs: until };
}

/** Named dataset file or replay store, if any. */
export function datasetFrom({ data, replay, exp }: RowFlags): DatasetSource | undefined {
  if (data !== undefined && replay !== undefined)
    throw wrongUsage("--data and --replay both name the decisions. Give one of them");
  if ((data ?? replay) !== undefined && exp !== undefined)
    throw wrongUsage(
      `--exp selects rollouts of a book, and rows of --${data === undefined ? "replay" : "data"} name no experiment. Remove one of them`,
    );
  return data !== undefined ? { data } : replay !== undefined ? { replay } : undefined;
}

/** Runs `work` on the named dataset, or on the open book. */
export async function withDecisions<T>(
  io: Io,
  flags: RowFlags & { mode?: "read" | "write" },
  work: (source: DecisionSource) => Promise<T>,
): Promise<T> {
  const dataset = datasetFrom(flags);
  return dataset === undefined ? withBook(io, flags, work) : work(dataset);
}

/** Filters of the request, as the sidecar records them. */
export function filtersOf(flags: RowFlags): Record<string, string> {
  const { family, exp, session, dataSource, since, until, feedback } = flags;
  const times = { since, until };
  return Object.fromEntries([
    ...Object.entries({ family, exp, session, dataSource, feedback }).filter(
      ([, value]) => value !== undefined,
    ),
    ...Object.entries(times).flatMap(([name, at]) =>
      at === undefined ? [] : [[name, new Date(at).toISOString()]],
    ),
  ]) as Record<string, string>;
}

function toTime(text: string): number {
  const at = parseTime(text)?.atMs;
  if (at === undefined) throw new InvalidArgumentError("It must be a date such as 2026-01-31.");
  return at;
}
