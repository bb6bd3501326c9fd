/** Plain CSV with a column map: any table with an action and a reward per row.
 *  In: a path, the map. Out: decisions, streamed. An empty reward is unlabelled; an empty propensity is missing. */
import { type CsvRecord, readTable } from "./csv-records.ts";
import {
  badRow,
  type ForeignDecision,
  type LinePlace,
  toAction,
  toIndex,
  toNumber,
  toPropensity,
  toTimeMs,
} from "./foreign-decision.ts";

export interface ColumnMap {
  readonly action: string;
  readonly reward: string;
  readonly propensity?: string;
  /** Names each decision; without it an id is made of file name, line and content. */
  readonly id?: string;
  /** ISO 8601, or seconds or milliseconds since 1970. Without it rows keep the order of the file. */
  readonly timestamp?: string;
  readonly episode?: string;
  readonly step?: string;
  /** The user's question: the words that policies read. */
  readonly prompt?: string;
  /** Fields of the request. A number enters as a number, other text as a category. */
  readonly features?: readonly string[];
}

interface MappedCsvOptions {
  readonly columns: ColumnMap;
  /** Names of the candidates in order, where the action column holds names. Otherwise it holds indices from 0. */
  readonly actions?: readonly string[];
}

export function readMappedCsv(file: string, options: MappedCsvOptions): AsyncGenerator<ForeignDecision> {
  const { columns } = options;
  const needed = Object.entries(columns).flatMap(([key, name]) =>
    key === "features" ? [] : [name as string],
  );
  return readTable(file, [...needed, ...(columns.features ?? [])], (header) =>
    rowParser(file, header, options),
  );
}

function rowParser(
  file: string,
  header: ReadonlyMap<string, number>,
  { columns, actions }: MappedCsvOptions,
): (record: CsvRecord) => ForeignDecision {
  const at = (name: string | undefined) => (name === undefined ? -1 : header.get(name)!);
  const [actionAt, rewardAt, propensityAt] = [at(columns.action), at(columns.reward), at(columns.propensity)];
  const [episodeAt, stepAt] = [at(columns.episode), at(columns.step)];
  const [idAt, timeAt, promptAt] = [at(columns.id), at(columns.timestamp), at(columns.prompt)];
  const features = (columns.features ?? []).map((name) => ({ name, at: header.get(name)! }));
  const numbers = actions && new Map(actions.map((name, i) => [name, i]));
  return ({ fields, line }) => {
    const place = { file, line };
    const reward = fields[rewardAt]!;
    const atMs = timeAt < 0 ? undefined : toTimeMs(fields[timeAt]!, columns.timestamp!, place);
    const propensity = propensityAt < 0 ? "" : fields[propensityAt]!;
    return {
      line,
      ...(idAt < 0 ? {} : { id: fields[idAt]! }),
      ...(atMs === undefined ? {} : { atMs }),
      action: numbers
        ? named(fields[actionAt]!, numbers, place)
        : numberOf(fields[actionAt]!, columns.action, place),
      ...(actions ? { actions: actions.length } : {}),
      reward: reward === "" ? undefined : toNumber(reward, columns.reward, place),
      propensity: propensity === "" ? undefined : toPropensity(propensity, columns.propensity!, place),
      ...(promptAt < 0 ? {} : { prompt: fields[promptAt]! }),
      ...fieldsOf(features.map(({ name, at: i }) => [name, fields[i]!])),
      ...(episodeAt < 0 ? {} : { episode: fields[episodeAt]! }),
      ...(stepAt < 0 ? {} : { step: toIndex(fields[stepAt], columns.step!, place) }),
    };
  };
}

function numberOf(text: string, column: string, place: LinePlace): number {
  if (/^\d+$/.test(text)) return toAction(text, column, place);
  throw badRow(
    place,
    `${column} ${JSON.stringify(text)} is no number from 0 on`,
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

function fieldsOf(cells: readonly [string, string][]): Pick<ForeignDecision, "context" | "texts"> {
  const isNumber = (text: string) => text.trim() !== "" && Number.isFinite(Number(text));
  return {
    context: cells.flatMap(([name, text]) => (isNumber(text) ? [[name, Number(text)] as const] : [])),
    texts: Object.fromEntries(cells.filter(([, text]) => !isNumber(text) && text !== "")),
  };
}
