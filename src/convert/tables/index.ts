/** Writes rollouts, calls or decisions as one Parquet or Arrow file for SQL and data frames, there whole or not at all.
 *  In: rollouts one at a time. Out: the file, and how many rows it has. */
import type { TableRequest } from "./tabled-rollout.ts";

export {
  BOOK_TABLES,
  type BookTableName,
  TABLE_FORMATS,
  type TabledRollout,
  type TableFormat,
} from "./tabled-rollout.ts";

/** Loaded when asked for: the Parquet writer is a package of its own. */
export async function writeTable(request: TableRequest): Promise<number> {
  return (await import("./write-table.ts")).writeTable(request);
}
