/** Reads decision logs of every format that `data import` knows, as a stream of rows.
 *  In: a path, its format, and facts that the rows lack (candidates, columns, source). Out: rows with all their
 *  candidates. */
import { existsSync, statSync } from "node:fs";
import { basename } from "node:path";
import { given, isRollbookError, RollbookError } from "../../base/index.ts";
import {
  type ActionSet,
  type ForeignDecision,
  findActions,
  fromForeign,
  RowIdentities,
  readDecisions,
  readDsjson,
  readOpenBandit,
  readRllibJson,
  readVowpalAdf,
  readVowpalCb,
  withActions,
} from "../../convert/index.ts";
import {
  type ColumnMap,
  type OutcomeColumns,
  readMappedTable,
  readOutcomes,
  surveyTable,
  TABLE_FORMS,
  type TableForm,
  tableFormOf,
} from "../../convert/mapped/index.ts";
import type { LoggedRow } from "../../learn/index.ts";

export const LOG_FORMATS = [
  "routing",
  "vw-cb",
  "vw-adf",
  "vw-dsjson",
  "open-bandit",
  "rllib",
  ...TABLE_FORMS,
  "outcomes",
] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

export interface LogOptions {
  format: LogFormat;
  dataSource: "real" | "synthetic" | "unknown";
  actions?: ActionSet | undefined;
  /** Column map for csv, jsonl, parquet and outcomes. */
  map?: ColumnMap | OutcomeColumns | undefined;
  /** Policy family of all rows (default: `agent_role` of a routing dataset, else `imported`). */
  family?: string | undefined;
  /** Called once with the assumption made where the file is ambiguous. */
  onNote?: ((note: string) => void) | undefined;
}

/** Derives the format from the keys of the map and the name of the file; without a map it is a routing dataset. */
export function formatOf(file: string, map: LogOptions["map"]): LogFormat {
  if (map === undefined) return "routing";
  return "outcomes" in map ? "outcomes" : tableFormOf(file);
}

export function isTableFormat(format: LogFormat): format is TableForm {
  return (TABLE_FORMS as readonly string[]).includes(format);
}

/** Refuses a log without decisions: it is another file, or another format. */
export async function* readLog(file: string, flags: LogOptions): AsyncGenerator<LoggedRow> {
  if (statSync(file).isDirectory())
    throw new RollbookError("no-file", { file }, `${file} is a directory. Name a file in it.`);
  let empty = true;
  for await (const row of rowsOf(file, flags)) {
    empty = false;
    yield flags.family === undefined ? row : { ...row, family: flags.family };
  }
  if (empty)
    throw new RollbookError(
      "empty-log",
      { file, format: flags.format },
      statSync(file).size === 0
        ? `${file} is empty. Name another file, with one decision a row.`
        : flags.format === "csv"
          ? `${file} has a header and no row below it. Write the log again, with one decision a row.`
          : `${file} holds no decision that can be read as ${flags.format}. Check the file and --format.`,
    );
}

/** Names the option that reads a replay store. The reader of lines refuses other directories. */
async function refuseReplayStore(file: string): Promise<void> {
  if (!existsSync(file) || !statSync(file).isDirectory()) return;
  // Loaded on demand: most datasets are files.
  const { isReplayStore } = await import("../../keep/replay/index.ts");
  if (isReplayStore(file))
    throw new RollbookError("no-file", { file }, `${file} is a replay store. Name it with --replay ${file}.`);
}

/** Reads the rows of a routing dataset, at least one. If the file is another kind of table, the error tells how to
 *  convert it. */
export async function* readDataset(
  file: string,
  { isImport = false }: { isImport?: boolean } = {},
): AsyncGenerator<LoggedRow> {
  await refuseReplayStore(file);
  try {
    let empty = true;
    for await (const row of readDecisions(file)) {
      empty = false;
      yield row;
    }
    if (empty)
      throw new RollbookError(
        "empty-log",
        { file },
        `${file} is empty. Write a dataset with \`rollbook data export --out FILE\`, or name another file.`,
      );
  } catch (error) {
    if (!isRollbookError(error, "bad-json") && !isRollbookError(error, "bad-row")) throw error;
    if (tableFormOf(file) === "jsonl") throw error;
    const map = "--map model=…,reward=…,propensity=…,prompt=…";
    const all = "--map prompt=…,outcomes=A+B --out FILE";
    const next = isImport
      ? `Add ${map}, where each … is a column. If each row has the outcomes of all candidates, in the columns A and B, add ${all}`
      : `Make one with \`rollbook data import ${file} ${map} --out FILE\`, where each … is a column. If each row has the outcomes of all candidates, in the columns A and B, use ${all}`;
    throw new RollbookError(
      "wrong-usage",
      { file },
      `${file} is not a routing dataset. ${next}. With --dry-run you see how it is read.`,
      { cause: error },
    );
  }
}

async function* rowsOf(file: string, flags: LogOptions): AsyncGenerator<LoggedRow> {
  if (flags.format === "outcomes") {
    if (flags.actions !== undefined) throw idle("--actions", flags.format);
    const columns = required(flags.map, "--map");
    if (!("outcomes" in columns)) throw wrongUsage("--format outcomes needs outcomes=… in --map");
    yield* readOutcomes(file, { columns, source: flags.dataSource });
    return;
  }
  if (flags.map !== undefined && !isTableFormat(flags.format)) throw idle("--map", flags.format);
  if (flags.format === "routing") {
    if (flags.actions !== undefined) throw idle("--actions", flags.format);
    for await (const row of readDataset(file, { isImport: true }))
      yield row.source === "unknown" ? { ...row, source: flags.dataSource } : row;
    return;
  }
  const { rows, names } = await decisionsOf(file, flags, flags.format);
  const options = {
    ...{ name: basename(file), source: flags.dataSource, identities: new RowIdentities() },
    ...given({ actions: names }),
  };
  let isNoted = false;
  for await (const decision of rows) {
    if (decision.isUtcAssumed && !isNoted) {
      isNoted = true;
      flags.onNote?.(
        `line ${decision.line} has a time without an offset: it is read as UTC, and so is every such time below it. If that is wrong, write the offset into the file, as in 2026-05-31T10:00:00+02:00`,
      );
    }
    yield fromForeign(decision, options);
  }
}

interface Decisions {
  readonly rows: AsyncIterable<ForeignDecision>;
  readonly names?: readonly string[] | undefined;
}

async function decisionsOf(
  file: string,
  { actions, map }: LogOptions,
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
    case "jsonl":
    case "parquet":
      return mappedTable(file, { columns: mapOf(required(map, "--map")), form: format }, actions);
    default:
      return format satisfies never;
  }
}

/** Reads rows that do not all state their number of candidates. */
async function numbered(
  file: string,
  read: (file: string) => AsyncIterable<ForeignDecision>,
  stated: ActionSet | undefined,
): Promise<Decisions> {
  const { count, names } = stated ?? (await findActions(read(file), file));
  return { rows: withActions(read(file), { count, file }), names };
}

async function mappedTable(
  file: string,
  { columns, form }: { columns: ColumnMap; form: TableForm },
  stated?: ActionSet,
): Promise<Decisions> {
  if (stated !== undefined && columns.candidates !== undefined)
    throw wrongUsage("--actions changes nothing if --map has candidates=…. Remove one of them");
  const found = await surveyTable(file, { columns, form, stated });
  const rows = readMappedTable(file, { columns, form, ...given({ actions: found.names }) });
  return { rows: withActions(rows, { count: found.count, file }), names: found.names };
}

function mapOf(columns: ColumnMap | OutcomeColumns): ColumnMap {
  if (!("outcomes" in columns)) return columns;
  throw wrongUsage("outcomes=… belongs to --format outcomes; other tables need model and reward");
}

function required<T>(value: T | undefined, flag: string): T {
  if (value !== undefined) return value;
  throw wrongUsage(`this format needs ${flag}`);
}

function idle(flag: string, format: string): RollbookError {
  const why =
    flag === "--map"
      ? "--map works only with csv, jsonl, parquet and outcomes"
      : "its rows list their candidates";
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
