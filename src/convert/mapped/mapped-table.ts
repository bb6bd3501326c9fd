/** Any table with a choice per row, read with a column map: CSV, JSON Lines or Parquet.
 *  In: a path, the map. Out: decisions, streamed. An empty reward is unlabelled; an empty propensity is missing. */
import { type Json, parseJson } from "../../base/index.ts";
import type { RewardTerms } from "../../learn/index.ts";
import { promptOfMessages } from "../../policy/index.ts";
import {
  badRow,
  type ForeignDecision,
  type LinePlace,
  timeOf,
  toAction,
  toField,
  toIndex,
  toNumber,
  toPropensity,
  toReward,
} from "../foreign-decision.ts";
import { type CellRow, readCells, type TableCell, type TableForm } from "./cell-rows.ts";

/** A column that enters the reward with its weight. */
export interface TermColumn {
  readonly column: string;
  readonly weight: number;
}

export interface ColumnMap {
  /** The column of the choice: the model that answered. */
  readonly action: string;
  /** If absent, the reward is the weighted sum of the terms. */
  readonly reward?: string;
  readonly terms?: readonly TermColumn[];
  /** Measured besides the reward. A part of the reward only if it is also a term. */
  readonly cost?: string;
  readonly latency?: string;
  readonly propensity?: string;
  /** A list in each row: the available candidates. If absent, every row has the candidates of the whole file. */
  readonly candidates?: string;
  /** Id of each decision. If absent, the id is made from the row's content. */
  readonly id?: string;
  readonly session?: string;
  readonly task?: string;
  /** ISO 8601 (without an offset: UTC), or seconds or milliseconds since 1970. If absent, a dataset keeps the order of
   *  the file, and a book sorts by id. */
  readonly time?: string;
  readonly episode?: string;
  readonly step?: string;
  /** The user's question: the text that policies read. */
  readonly prompt?: string;
  /** Messages of a chat request. Their prompt is the one that a gateway shows to its router. */
  readonly messages?: string;
  /** Fields of the request. A number stays a number, other text is a category. */
  readonly features?: readonly string[];
}

interface MappedTableOptions {
  readonly columns: ColumnMap;
  readonly form?: TableForm | undefined;
  /** Names of the candidates in order, if the action column holds names. Otherwise it holds indices from 0. */
  readonly actions?: readonly string[];
}

export async function* readMappedTable(
  file: string,
  options: MappedTableOptions,
): AsyncGenerator<ForeignDecision> {
  const { columns, form, actions } = options;
  const numbers = actions && new Map(actions.map((name, i) => [name, i]));
  for await (const row of readCells(file, { form, columns: wantedColumns(columns) }))
    yield decisionOf(row, columns, numbers);
}

/** Every column in the map, each once. */
export function wantedColumns({ features = [], terms = [], ...rest }: ColumnMap): string[] {
  return [...new Set([...Object.values(rest), ...features, ...terms.map(({ column }) => column)])];
}

function decisionOf(
  { cell, place }: CellRow,
  columns: ColumnMap,
  numbers: ReadonlyMap<string, number> | undefined,
): ForeignDecision {
  const text = (column: string) => textOf(cell(column));
  const names =
    columns.candidates === undefined ? undefined : namesOf(cell(columns.candidates), columns, place);
  const fields = (columns.features ?? []).flatMap((name) => toField(name, cell(name)));
  const measured = measuredOf({ cell, place }, columns);
  return {
    line: place.line,
    ...(columns.id === undefined ? {} : { id: text(columns.id) }),
    ...(columns.time === undefined ? {} : timeOf(cell(columns.time), columns.time, place)),
    ...choiceOf(cell(columns.action), { columns, names, numbers, place }),
    reward: measured.reward,
    propensity:
      columns.propensity === undefined || text(columns.propensity) === ""
        ? undefined
        : toPropensity(cell(columns.propensity), columns.propensity, place),
    ...promptOf({ cell, place }, columns),
    context: fields.flatMap(([name, value]) => (typeof value === "number" ? [[name, value] as const] : [])),
    texts: Object.fromEntries(
      fields.flatMap(([name, value]) => (typeof value === "number" ? [] : [[name, String(value)]])),
    ),
    ...(columns.episode === undefined ? {} : { episode: text(columns.episode) }),
    ...(columns.step === undefined ? {} : { step: toIndex(cell(columns.step), columns.step, place) }),
    ...(names === undefined ? {} : { names }),
    ...(columns.session === undefined
      ? {}
      : { session: required(text(columns.session), columns.session, place) }),
    ...(columns.task === undefined ? {} : { task: required(text(columns.task), columns.task, place) }),
    ...(Object.keys(measured.terms).length === 0 ? {} : { terms: measured.terms }),
  };
}

export function textOf(cell: TableCell): string {
  if (cell === undefined || cell === null) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}

function required(text: string, column: string, place: LinePlace): string {
  if (text !== "") return text;
  throw badRow(place, `${column} is empty`, "Fill it in, or leave the column out of the map");
}

function promptOf({ cell, place }: CellRow, columns: ColumnMap): Pick<ForeignDecision, "prompt"> {
  if (columns.messages === undefined)
    return columns.prompt === undefined ? {} : { prompt: textOf(cell(columns.prompt)) };
  const messages = listOf(cell(columns.messages), place);
  if (messages !== undefined) return { prompt: promptOfMessages(messages) };
  throw badRow(
    place,
    `${columns.messages} is not a list of messages`,
    'Give a JSON list such as [{"role": "user", "content": "…"}], or map the text with prompt=',
  );
}

/** A JSON list, or JSON text in a CSV cell. */
function listOf(cell: TableCell, { file, line }: LinePlace): Json[] | undefined {
  const value =
    typeof cell === "string" && cell.trimStart().startsWith("[") ? parseJson(cell, `${file}:${line}`) : cell;
  return Array.isArray(value) ? value : undefined;
}

/** Accepts `["a", "b"]`, or the texts `a|b`, `a;b` and `a,b`. */
function namesOf(cell: TableCell, columns: ColumnMap, place: LinePlace): readonly string[] {
  const listed = listOf(cell, place) ?? textOf(cell).split(/[|;,]/);
  const names = listed.map((each) => textOf(each).trim());
  if (!names.includes("") && new Set(names).size === names.length) return names;
  throw badRow(
    place,
    `${columns.candidates} ${JSON.stringify(cell ?? null)} is not a list of different names`,
    'List the candidates as ["a", "b"] or a|b',
  );
}

function choiceOf(
  cell: TableCell,
  options: {
    columns: ColumnMap;
    names: readonly string[] | undefined;
    numbers: ReadonlyMap<string, number> | undefined;
    place: LinePlace;
  },
): Pick<ForeignDecision, "action" | "actions"> {
  const { columns, names, numbers, place } = options;
  const text = textOf(cell);
  if (text === "") throw badRow(place, `${columns.action} is empty`, "Fill it in, or remove the row");
  if (names !== undefined) {
    const action = names.indexOf(text);
    if (action >= 0) return { action, actions: names.length };
    throw badRow(
      place,
      `${columns.action} ${JSON.stringify(text)} is not among the candidates ${names.join(", ")}`,
      `Correct ${columns.candidates}`,
    );
  }
  if (numbers === undefined) return { action: numberOf(text, columns.action, place) };
  return { action: named(text, numbers, place), actions: numbers.size };
}

function numberOf(text: string, column: string, place: LinePlace): number {
  if (/^\d+$/.test(text)) return toAction(text, column, place);
  throw badRow(
    place,
    `${column} ${JSON.stringify(text)} is not a number of 0 or more`,
    "Give the names of all candidates with --actions a,b,c, or leave --actions out",
  );
}

function named(name: string, numbers: ReadonlyMap<string, number>, place: LinePlace): number {
  const index = numbers.get(name);
  if (index !== undefined) return index;
  throw badRow(
    place,
    `action ${JSON.stringify(name)} is not among the ${numbers.size} named candidates`,
    "Add it to --actions",
  );
}

/** The reward and its terms. A reward made of terms is unlabelled if a term is missing. */
function measuredOf(
  { cell, place }: CellRow,
  columns: ColumnMap,
): { reward: number | undefined; terms: RewardTerms } {
  const terms: Record<string, RewardTerms[string]> = {};
  let sum: number | undefined = 0;
  for (const { column, weight } of columns.terms ?? []) {
    const value = toReward(cell(column), column, place);
    if (value === undefined) sum = undefined;
    else {
      terms[termName(column, columns)] = { value, weight };
      if (sum !== undefined) sum += weight * value;
    }
  }
  for (const name of ["cost", "latency"] as const) {
    const column = columns[name];
    if (column === undefined || textOf(cell(column)) === "") continue;
    terms[name] ??= { value: toNumber(cell(column), column, place), weight: 0 };
  }
  if (columns.reward === undefined) return { reward: sum, terms };
  return { reward: toReward(cell(columns.reward), columns.reward, place), terms };
}

/** "cost" or "latency" if the map assigns the column, else the last step of its path: `scores.quality` is quality. */
function termName(column: string, { cost, latency }: ColumnMap): string {
  if (column === cost) return "cost";
  return column === latency ? "latency" : column.slice(column.lastIndexOf(".") + 1);
}
