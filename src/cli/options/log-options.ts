/** How the flags of `data import` are read. */
import { InvalidArgumentError } from "commander";
import { wrongUsage } from "../../book/decisions/index.ts";
import type { ActionSet, ColumnMap, OutcomeColumns } from "../../convert/index.ts";

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

/** `action=arm,reward=score,features=a+b`, or for full information `prompt=question,outcomes=small+large`. */
export function toColumns(text: string): ColumnMap | OutcomeColumns {
  const map = Object.fromEntries(text.split(",").map((pair) => pair.split("=", 2) as [string, string]));
  if (map.outcomes !== undefined) return toOutcomeColumns(map);
  const { action, reward, features, ...rest } = map;
  const known = ["propensity", "prompt", "id", "timestamp", "episode", "step"];
  const other = Object.keys(rest).find((name) => !known.includes(name));
  if (action === undefined || reward === undefined)
    throw wrongUsage("--columns needs action=COLUMN and reward=COLUMN");
  if (other !== undefined)
    throw wrongUsage(
      `--columns knows no ${other}: choose among action, reward, features, ${known.join(", ")}`,
    );
  return { action, reward, ...rest, ...(features === undefined ? {} : { features: features.split("+") }) };
}

const LISTS = ["outcomes", "costs", "features"];

function toOutcomeColumns(map: Readonly<Record<string, string>>): OutcomeColumns {
  const other = Object.keys(map).find((name) => ![...LISTS, "prompt", "id", "task"].includes(name));
  if (other !== undefined) throw wrongUsage(`--columns with outcomes knows no ${other}`);
  const entries = Object.entries(map).map(([name, value]) => [
    name,
    LISTS.includes(name) ? value.split("+") : value,
  ]);
  return Object.fromEntries(entries) as unknown as OutcomeColumns;
}
