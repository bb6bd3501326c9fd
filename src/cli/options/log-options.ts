/** Parses the flags of `data import`. */
import { InvalidArgumentError } from "commander";
import { idFault, nearestName, parseJson } from "../../base/index.ts";
import { wrongUsage } from "../../book/decisions/index.ts";
import type { ActionSet } from "../../convert/index.ts";
import type { ColumnMap, OutcomeColumns, TermColumn } from "../../convert/mapped/index.ts";

/** Parses `3`, or `small,large`. */
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

export function toFamily(text: string): string {
  const fault = idFault(text);
  if (fault !== undefined) throw new InvalidArgumentError(`It ${fault}.`);
  return text;
}

/** Parses `model=arm,reward=score,features=a+b`, or for full information `prompt=question,outcomes=small+large`. A JSON
 *  object is accepted too, for columns whose names contain commas, equals signs or pluses. */
export function toMap(text: string): ColumnMap | OutcomeColumns {
  const map = text.trimStart().startsWith("{") ? jsonMap(text) : pairsOf(text);
  const outcomes = map.outcomes !== undefined;
  const known = outcomes ? OUTCOME_KEYS : MAP_KEYS;
  const other = Object.keys(map).find((key) => !known.includes(key));
  if (other !== undefined)
    throw wrongUsage(
      `--map ${outcomes ? "with outcomes " : ""}does not know the key ${other}. ${nearest(other, known)}It knows ${known.filter((key) => !OLD_KEYS.includes(key)).join(", ")}${outcomes ? "" : "; for a table with the outcome of every candidate outcomes and costs"}`,
    );
  const entries = Object.entries(map).map(([key, value]) => [
    key,
    LISTS.includes(key) ? listOf(value) : value,
  ]);
  const lists = Object.fromEntries(entries) as Record<string, unknown>;
  return outcomes ? (lists as unknown as OutcomeColumns) : columnMap(lists as WrittenMap);
}

const MAP_KEYS = [
  ...["model", "reward", "prompt", "messages", "candidates", "propensity", "terms", "cost", "latency", "id"],
  ...["session", "task", "time", "episode", "step", "features", "action", "timestamp"],
];
/** Older names of model and time, which the help does not list. */
const OLD_KEYS = ["action", "timestamp"];
const OUTCOME_KEYS = ["outcomes", "costs", "prompt", "features", "id", "task"];
function nearest(key: string, known: readonly string[]): string {
  const meant = nearestName(key, known);
  return meant === undefined ? "" : `Did you mean ${meant}? `;
}

const LISTS = ["outcomes", "costs", "features", "terms"];

type MapEntries = Readonly<Record<string, string | readonly string[]>>;

function pairsOf(text: string): MapEntries {
  const entries = text.split(",").map((pair): [string, string] => {
    const at = pair.indexOf("=");
    if (at > 0 && at < pair.length - 1) return [pair.slice(0, at).trim(), pair.slice(at + 1)];
    throw wrongUsage(`--map ${JSON.stringify(pair)} is not of the form KEY=COLUMN`);
  });
  const twice = entries.find(([key], i) => entries.findIndex(([other]) => other === key) < i);
  if (twice !== undefined) throw wrongUsage(`--map names ${twice[0]} twice. Name one column for it`);
  return Object.fromEntries(entries);
}

function jsonMap(text: string): MapEntries {
  const map = parseJson(text, "--map");
  const isText = (value: unknown) => typeof value === "string" && value !== "";
  for (const [key, value] of Object.entries(map as object))
    if (!isText(value) && !(LISTS.includes(key) && Array.isArray(value) && value.every(isText)))
      throw wrongUsage(
        `--map: ${key} is not a column${LISTS.includes(key) ? ", nor a list of columns" : ""}`,
      );
  return map as MapEntries;
}

function listOf(value: string | readonly string[]): readonly string[] {
  return typeof value === "string" ? value.split("+") : value;
}

/** Keys as a user writes them. */
interface WrittenMap extends Omit<ColumnMap, "action" | "terms"> {
  readonly model?: string;
  readonly action?: string;
  readonly timestamp?: string;
  readonly terms?: readonly string[];
}

/** Pairs of names for the same key. */
const ALIASES = [
  ["model", "action"],
  ["time", "timestamp"],
] as const;

function columnMap(map: WrittenMap): ColumnMap {
  const both = ALIASES.find(([one, other]) => map[one] !== undefined && map[other] !== undefined);
  if (both !== undefined)
    throw wrongUsage(`--map names both ${both.join(" and ")}, which mean the same. Keep one of them`);
  const { model, action = model, timestamp, time = timestamp, terms, ...rest } = map;
  if (action === undefined || (rest.reward === undefined && terms === undefined))
    throw wrongUsage("--map needs model=COLUMN, and reward=COLUMN or terms=COLUMN:WEIGHT+…");
  return {
    action,
    ...rest,
    ...(time === undefined ? {} : { time }),
    ...(terms === undefined ? {} : { terms: terms.map(toTerm) }),
  };
}

/** Parses a term: `quality` has weight 1, `cost:-0.5` the given weight. */
function toTerm(text: string): TermColumn {
  const [, column, weight] = /^(.+):([^:]+)$/.exec(text) ?? [];
  if (column === undefined) return { column: text, weight: 1 };
  if (!Number.isFinite(Number(weight)))
    throw wrongUsage(`--map: the weight ${JSON.stringify(weight)} of ${column} is not a number`);
  return { column, weight: Number(weight) };
}
