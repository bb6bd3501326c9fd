/** Writes one table as a Parquet or an Arrow file. Memory is bounded by one row group: rows are held as the values of
 *  their columns, and text counts towards the size of a group. */

import { type ArrowType, writeArrowRows } from "../arrow/index.ts";
import { writeNewFile } from "../new-file.ts";
import { F64, I64, orNull, TEXT, TIME, writeParquetRows } from "../parquet/index.ts";
import { rowGroups } from "../row-groups.ts";
import { callTable } from "./call-table.ts";
import { decisionTable } from "./decision-table.ts";
import { rolloutTable } from "./rollout-table.ts";
import type { BookTable, TableRequest } from "./tabled-rollout.ts";

/** Number of characters that count as much as one number in a row group. */
const CHARS_PER_VALUE = 256;

/** Returns the number of rows. */
export function writeTable(request: TableRequest): Promise<number> {
  const { table, family } = request;
  switch (table) {
    case "rollouts":
      return write(rolloutTable, request);
    case "calls":
      return write(callTable, request);
    case "decisions":
      return write(decisionTable, request, (item) => family === undefined || item.family === family);
    default:
      return table satisfies never;
  }
}

type TableRow = readonly unknown[];

async function write<Item>(
  { columns, itemsOf }: BookTable<Item>,
  { table, format, out, rollouts, read }: TableRequest,
  isWanted: (item: Item) => boolean = () => true,
): Promise<number> {
  const rows = async function* (): AsyncGenerator<TableRow> {
    for await (const rollout of rollouts)
      for await (const item of itemsOf(rollout, read))
        if (isWanted(item)) yield columns.map(({ value }) => value(item));
  };
  const inRow = columns.map(({ name, type }, i) => ({ name, type, value: (row: TableRow) => row[i] }));
  const metadata = { rollbook: JSON.stringify({ table }) };
  let count = 0;
  await writeNewFile(out, async (file) => {
    count =
      format === "arrow"
        ? await writeArrowRows({ groups: rowGroups(rows(), sizeOf), columns: inRow, metadata }, file)
        : await writeParquetRows({ rows: rows(), columns: inRow.map(inParquet), sizeOf, metadata }, file);
  });
  return count;
}

const PARQUET = { text: TEXT, f64: F64, i64: I64, time: TIME };

function inParquet<Column extends { readonly type: ArrowType }>(column: Column) {
  return { ...column, type: orNull(PARQUET[column.type]) };
}

function sizeOf(row: TableRow): number {
  const chars = row.reduce<number>((sum, each) => sum + (typeof each === "string" ? each.length : 0), 0);
  return 1 + Math.floor(chars / CHARS_PER_VALUE);
}
