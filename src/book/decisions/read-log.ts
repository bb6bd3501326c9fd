/** Decision logs of every format `data import` knows, as routing rows, streamed.
 *  In: a path, its format, what the rows do not say (candidates, columns, source). Out: rows with all their candidates. */
import { basename } from "node:path";
import { InvalidArgumentError } from "commander";
import { RollbookError } from "../../base/index.ts";
import { type ActionSet, findActions, findNamedActions, withActions } from "../../convert/action-set.ts";
import type { ForeignDecision } from "../../convert/foreign-decision.ts";
import { type ColumnMap, readMappedCsv } from "../../convert/mapped-csv.ts";
import { readOpenBandit } from "../../convert/open-bandit.ts";
import { readRllibJson } from "../../convert/rllib-json.ts";
import { fromForeign, type RoutingRow, readRoutingRows } from "../../convert/routing-jsonl.ts";
import { readDsjson } from "../../convert/vowpal-dsjson.ts";
import { readVowpalAdf, readVowpalCb } from "../../convert/vowpal-text.ts";

export const LOG_FORMATS = [
  "routing",
  "vw-cb",
  "vw-adf",
  "vw-dsjson",
  "open-bandit",
  "rllib",
  "csv",
] as const;

export interface LogFlags {
  format: (typeof LOG_FORMATS)[number];
  dataSource: "real" | "synthetic" | "unknown";
  actions?: ActionSet;
  columns?: ColumnMap;
}

/** A log without a decision is refused: it is another file, or another format. */
export async function* readLog(file: string, flags: LogFlags): AsyncGenerator<RoutingRow> {
  let empty = true;
  for await (const row of rowsOf(file, flags)) {
    empty = false;
    yield row;
  }
  if (empty)
    throw new RollbookError(
      "empty-log",
      { file, format: flags.format },
      `${file} holds no decision that can be read as ${flags.format}. Check the file and --format.`,
    );
}

async function* rowsOf(file: string, flags: LogFlags): AsyncGenerator<RoutingRow> {
  if (flags.columns !== undefined && flags.format !== "csv") throw idle("--columns", flags.format);
  if (flags.format === "routing") {
    if (flags.actions !== undefined) throw idle("--actions", flags.format);
    for await (const row of readRoutingRows(file))
      yield row.data_source === "unknown" ? { ...row, data_source: flags.dataSource } : row;
    return;
  }
  const { rows, names } = await decisionsOf(file, flags, flags.format);
  const options = {
    name: basename(file),
    source: flags.dataSource,
    ...(names === undefined ? {} : { actions: names }),
  };
  for await (const decision of rows) yield fromForeign(decision, options);
}

interface Decisions {
  readonly rows: AsyncIterable<ForeignDecision>;
  readonly names?: readonly string[] | undefined;
}

async function decisionsOf(
  file: string,
  { actions, columns }: LogFlags,
  format: Exclude<LogFlags["format"], "routing">,
): Promise<Decisions> {
  switch (format) {
    case "vw-cb": {
      const { count, names } = required(actions, "--actions");
      return { rows: readVowpalCb(file, { actions: count }), names };
    }
    case "vw-adf":
    case "vw-dsjson":
      if (actions !== undefined) throw idle("--actions", format);
      return { rows: format === "vw-adf" ? readVowpalAdf(file) : readDsjson(file) };
    case "open-bandit":
      return numbered(file, readOpenBandit, actions);
    case "rllib":
      return numbered(file, readRllibJson, actions);
    case "csv":
      return mappedCsv(file, required(columns, "--columns"), actions);
    default:
      return format satisfies never;
  }
}

/** Rows that do not all say how many candidates they had. */
async function numbered(
  file: string,
  read: (file: string) => AsyncIterable<ForeignDecision>,
  stated: ActionSet | undefined,
): Promise<Decisions> {
  const { count, names } = stated ?? (await findActions(read(file), file));
  return { rows: withActions(read(file), { count, file }), names };
}

async function mappedCsv(file: string, columns: ColumnMap, stated?: ActionSet): Promise<Decisions> {
  const { count, names } = stated ?? (await findNamedActions(file, columns.action));
  const rows = readMappedCsv(file, { columns, ...(names === undefined ? {} : { actions: names }) });
  return { rows: withActions(rows, { count, file }), names };
}

/** `3`, or `small,large`. */
export function toActions(text: string): ActionSet {
  if (/^\d+$/.test(text)) {
    const count = Number(text);
    if (count < 1 || !Number.isSafeInteger(count)) throw new InvalidArgumentError("It must be at least 1.");
    return { count };
  }
  const names = text.split(",");
  if (names.includes("") || new Set(names).size < names.length)
    throw new InvalidArgumentError("It must be a number, or names such as small,large, each once.");
  return { count: names.length, names };
}

/** `action=arm,reward=score,features=a+b`. */
export function toColumns(text: string): ColumnMap {
  const map = Object.fromEntries(text.split(",").map((pair) => pair.split("=", 2) as [string, string]));
  const { action, reward, features, ...rest } = map;
  const other = Object.keys(rest).find((name) => !["propensity", "episode", "step"].includes(name));
  if (action === undefined || reward === undefined || other !== undefined)
    throw wrongUsage(
      `--columns needs action and reward${other === undefined ? "" : `, and knows no ${other}`}`,
    );
  return { action, reward, ...rest, ...(features === undefined ? {} : { features: features.split("+") }) };
}

function required<T>(value: T | undefined, flag: string): T {
  if (value !== undefined) return value;
  throw wrongUsage(`this format needs ${flag}`);
}

function idle(flag: string, format: string): RollbookError {
  const why = flag === "--columns" ? "only csv has columns to name" : "its rows list their candidates";
  return wrongUsage(`${flag} changes nothing for ${format}: ${why}. Leave it out`);
}

function wrongUsage(what: string): RollbookError {
  return new RollbookError("wrong-usage", {}, `${what}. See --help.`);
}
