/** Rows of a table in CSV, JSON Lines or Parquet. Every reader with a column map uses this module.
 *  In: a path, its form, the requested columns. Out: a function from column to cell for each row, streamed. In JSON
 *  Lines and Parquet a column may be a path: `request.messages[0].content`, `choices[-1].text`. */
import { isObject, type Json } from "../../base/index.ts";
import { readCsv, readTable } from "../csv-records.ts";
import type { LinePlace } from "../foreign-decision.ts";
import { readJsonLines } from "../json-lines.ts";
import { parquetColumns, readParquet } from "../parquet-records.ts";

export const TABLE_FORMS = ["csv", "jsonl", "parquet"] as const;
export type TableForm = (typeof TABLE_FORMS)[number];

/** Undefined: no value. In CSV every cell is text. */
export type TableCell = Json | undefined;

export interface CellRow {
  readonly cell: (column: string) => TableCell;
  readonly place: LinePlace;
}

/** Infers the form from the file's name (default: CSV). */
export function tableFormOf(file: string): TableForm {
  if (/\.parquet$/i.test(file)) return "parquet";
  return /\.(jsonl|ndjson|json)(\.gz)?$/i.test(file) ? "jsonl" : "csv";
}

export async function* readCells(
  file: string,
  { form = tableFormOf(file), columns }: { form?: TableForm | undefined; columns: readonly string[] },
): AsyncGenerator<CellRow> {
  switch (form) {
    case "parquet":
      for await (const { value, row } of readParquet(file, columns, rootOf))
        yield { cell: (column) => cellAt(value, column), place: { file, line: row } };
      return;
    case "jsonl":
      for await (const { value, place } of readJsonLines(file, "Write one object per line"))
        yield { cell: (column) => cellAt(value, column), place };
      return;
    case "csv":
      yield* readTable(file, columns, (header) => ({ fields, line }) => ({
        cell: (column: string) => fields[header.get(column)!],
        place: { file, line },
      }));
      return;
    default:
      form satisfies never;
  }
}

/** The columns of a file: from the header, the first object, or the Parquet schema. */
export async function columnsOfTable(file: string, form: TableForm = tableFormOf(file)): Promise<string[]> {
  if (form === "parquet") return parquetColumns(file);
  if (form === "csv") for await (const { fields } of readCsv(file)) return [...fields];
  else
    for await (const { value } of readJsonLines(file, "Write one object per line")) return Object.keys(value);
  return [];
}

/** A key with exactly this name takes precedence, so that names with dots need no escape. */
function cellAt(value: { readonly [key: string]: TableCell }, column: string): TableCell {
  if (Object.hasOwn(value, column)) return value[column];
  let found: TableCell = value as Json;
  for (const step of stepsOf(column)) {
    if (Array.isArray(found)) found = /^-?\d+$/.test(step) ? found.at(Number(step)) : undefined;
    else if (isObject(found)) found = Object.hasOwn(found, step) ? found[step] : undefined;
    else return undefined;
  }
  return found;
}

/** `a.b[0]` → a, b, 0. */
function stepsOf(path: string): string[] {
  return path
    .replaceAll(/\[(-?\d+)\]/g, ".$1")
    .split(".")
    .filter((step) => step !== "");
}

function rootOf(path: string): string {
  return stepsOf(path)[0] ?? path;
}
