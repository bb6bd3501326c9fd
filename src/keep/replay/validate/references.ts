/** Rules of references: foreign keys, dictionary rows, ranges and flags must be valid. Driven by the schema. Ranges of
 *  one column are adjacent without gap or overlap, and end at the end of the table. */
import {
  type ColumnSpec,
  columnsOf,
  FACT_TABLES,
  TABLE_NAMES,
  type TableName,
  tableOf,
} from "../tables/index.ts";
import type { RuleContext } from "./rule.ts";

export async function checkReferences(
  context: RuleContext,
  isIntact: (path: string) => boolean,
): Promise<void> {
  for (const table of TABLE_NAMES) {
    for (const column of columnsOf(table)) {
      const path = `${table}/${column}`;
      const spec = tableOf(table).columns[column]!;
      if (!isIntact(path)) continue;
      if (spec.references !== undefined || spec.dictionary || spec.dtype === "bool")
        await checkColumn(context, { table, column, spec });
    }
  }
  for (const table of FACT_TABLES) {
    for (const [column, spec] of Object.entries(tableOf(table).columns)) {
      const paths = [`${table}/${column}`, `${table}/${spec.count}`];
      if (spec.starts !== undefined && paths.every(isIntact))
        await checkRanges(context, { table, column, spec });
    }
  }
}

interface ColumnPlace {
  table: TableName;
  column: string;
  spec: ColumnSpec;
}

async function checkColumn(context: RuleContext, { table, column, spec }: ColumnPlace): Promise<void> {
  const { reader } = context;
  const target = (spec.dictionary ? "dictionary" : spec.references) as TableName | undefined;
  const [low, high] = target === undefined ? [0, 2] : [spec.optional ? -1 : 0, reader.rows(target)];
  const path = `${table}/${column}`;
  const array = await reader.array(table, column as never);
  let broken = false;
  for await (const chunk of array.chunks()) {
    const values = chunk.values as Int32Array;
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (value >= low && value < high) continue;
      broken = true;
      const row = chunk.from + Math.floor(i / array.width);
      if (target === undefined) context.report(path, row, "value", `${value} is neither 0 nor 1`);
      else context.report(path, row, "reference", `${value} is not a row of ${target}, which has ${high}`);
    }
  }
  if (broken) context.distrust(path);
}

async function checkRanges(context: RuleContext, { table, column, spec }: ColumnPlace): Promise<void> {
  const { reader } = context;
  const end = reader.rows(spec.starts as TableName);
  const total = reader.rows(table);
  let next = 0;
  let broken = false;
  const complain = (row: number, reason: string) => {
    broken = true;
    context.report(`${table}/${column}`, row, "range", reason);
  };
  for await (const { from, columns: block } of reader.blocks(table, [column, spec.count] as never[])) {
    const starts = (block as Record<string, Int32Array | BigInt64Array>)[column]!;
    const counts = (block as Record<string, Int32Array>)[spec.count!]!;
    for (let i = 0; i < counts.length; i++) {
      const [start, count] = [Number(starts[i]!), counts[i]!];
      if (start !== next) complain(from + i, `begins at ${start}; the range before ends at ${next}`);
      if (count < 0 || start + count > end)
        complain(from + i, `${count} rows from ${start} leave ${spec.starts}, which has ${end}`);
      next = start + Math.max(0, count);
    }
  }
  if (!broken && next !== end) complain(total, `the ranges end at ${next}, ${spec.starts} has ${end} rows`);
  if (broken) context.distrust(`${table}/${column}`);
}
