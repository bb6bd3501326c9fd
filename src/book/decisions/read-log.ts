/** Decision logs of every format `data import` knows, as rows, streamed.
 *  In: a path, its format, what the rows do not say (candidates, columns, source). Out: rows with all their candidates. */
import { basename } from "node:path";
import { given, isRollbookError, RollbookError } from "../../base/index.ts";
import {
  type ActionSet,
  type ColumnMap,
  type ForeignDecision,
  findActions,
  findNamedActions,
  fromForeign,
  type OutcomeColumns,
  readDecisions,
  readDsjson,
  readMappedCsv,
  readOpenBandit,
  readOutcomes,
  readRllibJson,
  readVowpalAdf,
  readVowpalCb,
  withActions,
} from "../../convert/index.ts";
import type { LoggedRow } from "../../learn/index.ts";

export const LOG_FORMATS = [
  "routing",
  "vw-cb",
  "vw-adf",
  "vw-dsjson",
  "open-bandit",
  "rllib",
  "csv",
  "outcomes",
] as const;

export interface LogOptions {
  format: (typeof LOG_FORMATS)[number];
  dataSource: "real" | "synthetic" | "unknown";
  actions?: ActionSet | undefined;
  columns?: ColumnMap | OutcomeColumns | undefined;
}

/** A log without a decision is refused: it is another file, or another format. */
export async function* readLog(file: string, flags: LogOptions): AsyncGenerator<LoggedRow> {
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

async function* rowsOf(file: string, flags: LogOptions): AsyncGenerator<LoggedRow> {
  if (flags.format === "outcomes") {
    if (flags.actions !== undefined) throw idle("--actions", flags.format);
    const columns = required(flags.columns, "--columns");
    if (!("outcomes" in columns)) throw wrongUsage("--format outcomes needs outcomes=… in --columns");
    yield* readOutcomes(file, { columns, source: flags.dataSource });
    return;
  }
  if (flags.columns !== undefined && flags.format !== "csv") throw idle("--columns", flags.format);
  if (flags.format === "routing") {
    if (flags.actions !== undefined) throw idle("--actions", flags.format);
    try {
      for await (const row of readDecisions(file))
        yield row.source === "unknown" ? { ...row, source: flags.dataSource } : row;
    } catch (error) {
      if (!isRollbookError(error, "bad-json") || !/\.csv(\.gz)?$/i.test(file)) throw error;
      const columns = "--columns action=…,reward=…,propensity=…,prompt=…";
      throw wrongUsage(`${file} is not a routing dataset. Read CSV with --format csv ${columns}`, error);
    }
    return;
  }
  const { rows, names } = await decisionsOf(file, flags, flags.format);
  const options = { name: basename(file), source: flags.dataSource, ...given({ actions: names }) };
  for await (const decision of rows) yield fromForeign(decision, options);
}

interface Decisions {
  readonly rows: AsyncIterable<ForeignDecision>;
  readonly names?: readonly string[] | undefined;
}

async function decisionsOf(
  file: string,
  { actions, columns }: LogOptions,
  format: Exclude<LogOptions["format"], "routing" | "outcomes">,
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
      return mappedCsv(file, mapOf(required(columns, "--columns")), actions);
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
  const rows = readMappedCsv(file, { columns, ...given({ actions: names }) });
  return { rows: withActions(rows, { count, file }), names };
}

function mapOf(columns: ColumnMap | OutcomeColumns): ColumnMap {
  if (!("outcomes" in columns)) return columns;
  throw wrongUsage("outcomes=… belongs to --format outcomes; csv needs action and reward");
}

function required<T>(value: T | undefined, flag: string): T {
  if (value !== undefined) return value;
  throw wrongUsage(`this format needs ${flag}`);
}

function idle(flag: string, format: string): RollbookError {
  const why = flag === "--columns" ? "only csv has columns to name" : "its rows list their candidates";
  return wrongUsage(`${flag} changes nothing for ${format}: ${why}. Leave it out`);
}

export function wrongUsage(what: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "wrong-usage",
    {},
    `${what}. See --help.`,
    cause === undefined ? undefined : { cause },
  );
}
