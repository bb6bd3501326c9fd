/** The rows a command works on: of a dataset file (`--data`), else of the book. */
import { canonicalize } from "../../base/canonical-json.ts";
import { type Digest, digestBytes } from "../../base/digest.ts";
import { RollbookError } from "../../base/index.ts";
import { type RoutingRow, readRoutingRows, toDecisionRow } from "../../convert/routing-jsonl.ts";
import type { DecisionData } from "../../learn/index.ts";
import type { Io } from "../../cli/io.ts";
import { type BookFlags, withIndexedBook } from "../open-book.ts";
import { type RowFilters, rowsOfBook } from "./rows-of-book.ts";

export interface DataFlags extends BookFlags, RowFilters {
  readonly data?: string;
}

export async function loadRows(io: Io, flags: DataFlags): Promise<RoutingRow[]> {
  if (flags.data === undefined)
    return withIndexedBook(io, flags, (book, index) => rowsOfBook(book, index, flags));
  const rows: RoutingRow[] = [];
  for await (const row of readRoutingRows(flags.data)) if (passes(row, flags)) rows.push(row);
  return rows;
}

/** The rows as a training set; its digest is that of the rows, whatever file or book they came from. */
export function toTrainingData(rows: readonly RoutingRow[]): DecisionData {
  if (rows.length === 0)
    throw new RollbookError(
      "empty-split",
      { rows: 0 },
      "there are no rows. Log decisions, or loosen the filters.",
    );
  return {
    rows: rows.map(toDecisionRow),
    digest: digestRows(rows),
    batches: [],
  };
}

/** The digest of rows, whatever file or book they came from and in whatever order. */
export function digestRows(rows: readonly RoutingRow[]): Digest {
  const lines = rows.map((row) => canonicalize(row)).sort();
  return digestBytes("rollbook.routing-rows.v1", Buffer.from(lines.join("\n")));
}

function passes(row: RoutingRow, filters: RowFilters): boolean {
  const at = Date.parse(row.timestamp);
  return (
    (filters.session === undefined || row.session_id === filters.session) &&
    (filters.family === undefined || row.agent_role === filters.family) &&
    (filters.dataSource === undefined || row.data_source === filters.dataSource) &&
    at >= (filters.sinceMs ?? Number.NEGATIVE_INFINITY) &&
    at < (filters.untilMs ?? Number.POSITIVE_INFINITY)
  );
}
