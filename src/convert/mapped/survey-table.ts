/** The first pass over a table with a column map: finds the candidates and checks that the map fits the file.
 *  In: a path, the map. Out: the candidates. Refuses a path that no row has, and a text feature with a different value
 *  in almost every row: a category of single cases teaches nothing. Memory: 24 bytes for each row and feature. */
import { compareUtf8, RollbookError } from "../../base/index.ts";
import { type ActionSet, checkFound } from "../action-set.ts";
import { badRow, toField } from "../foreign-decision.ts";
import { IdTable } from "../id-table.ts";
import { columnsOfTable, readCells, type TableForm } from "./cell-rows.ts";
import { type ColumnMap, textOf, wantedColumns } from "./mapped-table.ts";

/** Maximum number of candidates. More of them mean another kind of column, such as ids or prompts. */
const MAX_FOUND = 1000;
/** Minimum number of rows: in fewer rows every category may be rare by chance. */
const ENOUGH_ROWS = 10;
/** Maximum share of distinct values among the rows. A category with more values is free text or an id. */
const MOST_VALUES = 0.9;

interface SurveyRequest {
  readonly columns: ColumnMap;
  readonly form?: TableForm | undefined;
  readonly stated?: ActionSet | undefined;
}

/** The candidates are given, listed by each row, or found in the action column. Values 0, 1, 2 … there are indices, and
 *  other values are names. */
export async function surveyTable(
  file: string,
  { columns, form, stated }: SurveyRequest,
): Promise<ActionSet> {
  const wanted = wantedColumns(columns);
  const absent = new Set(wanted);
  const isFound = stated === undefined && columns.candidates === undefined;
  const actions = new Set<string>();
  const categories = new CategoryTally(columns.features ?? []);
  let rows = 0;
  for await (const { cell, place } of readCells(file, { form, columns: wanted })) {
    rows++;
    for (const column of absent) if (cell(column) !== undefined) absent.delete(column);
    const action = textOf(cell(columns.action));
    if (isFound && action !== "") actions.add(action);
    if (actions.size > MAX_FOUND)
      throw badRow(
        place,
        `column ${columns.action} holds more than ${MAX_FOUND} different actions`,
        "Name the column of the choice, or state --actions",
      );
    categories.add(cell, rows);
  }
  if (rows > 0 && absent.size > 0) throw await absentColumns(file, [...absent], form);
  categories.check(file, rows);
  if (!isFound) return stated ?? { count: 0 };
  const numbered = [...actions].every((_, i) => actions.has(String(i)));
  const names = [...actions].sort(compareNames);
  return checkFound({ count: actions.size, ...(numbered ? {} : { names }) }, file);
}

/** Number of distinct texts of each feature. */
export class CategoryTally {
  readonly #seen: Map<string, { readonly values: IdTable; count: number }>;

  constructor(features: readonly string[]) {
    this.#seen = new Map(features.map((name) => [name, { values: new IdTable(), count: 0 }]));
  }

  add(cell: (column: string) => unknown, row: number): void {
    for (const [name, seen] of this.#seen)
      for (const [, value] of toField(name, cell(name)))
        if (typeof value === "string" && seen.values.add(value, row) === undefined) seen.count++;
  }

  check(file: string, rows: number): void {
    for (const [name, { count }] of this.#seen)
      if (rows >= ENOUGH_ROWS && count > MOST_VALUES * rows)
        throw new RollbookError(
          "free-text-category",
          { file, column: name, values: count, rows },
          `${file}: the feature ${name} holds ${count} different texts in ${rows} rows, so it is not a category. Map it with prompt=${name} if it is the question, with id=${name} if it names the decision, or leave it out.`,
        );
  }
}

async function absentColumns(
  file: string,
  names: readonly string[],
  form?: TableForm,
): Promise<RollbookError> {
  const there = await columnsOfTable(file, form);
  return badRow(
    { file, line: 1 },
    `no row has ${names.map((name) => JSON.stringify(name)).join(", ")}`,
    `Correct the map: the file has ${there.join(", ").slice(0, 400)}`,
  );
}

/** Compares numbers by value, so that 9 comes before 10. */
function compareNames(a: string, b: string): number {
  const gap = Number(a) - Number(b);
  return Number.isNaN(gap) || gap === 0 ? compareUtf8(a, b) : gap;
}
