/** Defines the flags that select rollouts: shared by `artifact ls` and `view`. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Clock, parseTime } from "../../base/index.ts";
import type { RolloutQuery } from "../../book/rollouts/index.ts";
import { failureOwner } from "../../contract/index.ts";
import { finite, positiveWhole } from "./numbers.ts";

/** Endings as `artifact ls` prints them; `failed` means a failure of any owner. */
const ENDINGS = [
  "terminal",
  "truncated",
  "cancelled",
  "failed",
  ...failureOwner.options.map((owner) => `failed-${owner}`),
];
const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

interface FilterFlags extends Omit<RolloutQuery, "experiment" | "sinceMs"> {
  readonly exp?: string;
  readonly since?: string;
}

export function addRolloutFilters(command: Command, limitDefault = "all"): Command {
  return command
    .option(
      "--exp <id>",
      "only rollouts of this experiment, a name in the column EXPERIMENT of `artifact ls`",
    )
    .option(
      "--since <time>",
      "only rollouts that ended since: a date (ISO 8601), or 30m, 24h, 7d, 2w",
      timeWords,
    )
    .addOption(
      new Option(
        "--ending <ending>",
        "only rollouts that ended this way; failed means a failure of any owner",
      ).choices(ENDINGS),
    )
    .option("--min-score <n>", "only rollouts with at least this reward", finite)
    .option("--task <task>", "only rollouts of this task: its id, or part of its name")
    .option(
      "--model <id>",
      "only rollouts in which this candidate was chosen (column CHOSEN of `artifact ls`)",
    )
    .option("--family <family>", "only rollouts with choices by a policy of this family, such as router")
    .option("--group <group>", "only rollouts of this group, within which advantages are computed")
    .option("--limit <n>", `at most this many rollouts (default: ${limitDefault})`, positiveWhole);
}

export function rolloutQuery(flags: FilterFlags, clock: Clock): RolloutQuery {
  const { exp, since, family, group, task, model, ending, minScore, limit } = flags;
  const sinceMs = since === undefined ? undefined : timeOf(since, clock.nowMs());
  return { family, group, task, model, ending, minScore, limit, experiment: exp, sinceMs };
}

/** Checks the text now. A relative time needs the clock, and is computed later. */
function timeWords(text: string): string {
  if (timeOf(text, 0) === undefined)
    throw new InvalidArgumentError("It must be a date such as 2026-01-31, or a time ago such as 24h.");
  return text;
}

/** Parses `24h` or `30d`; undefined for anything else. */
export function agoMs(text: string): number | undefined {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([mhdw])$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * UNITS[unit!]!;
}

function timeOf(text: string, nowMs: number): number | undefined {
  const ago = agoMs(text);
  if (ago !== undefined) return nowMs - ago;
  return parseTime(text)?.atMs;
}
