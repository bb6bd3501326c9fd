/** Writes rollouts, calls or decisions as one complete Parquet or Arrow file for SQL and data frames, or none.
 *  In: rollouts, one at a time. Out: the file, and its number of rows. */
import type { TableRequest } from "./tabled-rollout.ts";

export {
  BOOK_TABLES,
  type BookTableName,
  TABLE_FORMATS,
  type TabledRollout,
  type TableFormat,
} from "./tabled-rollout.ts";

/** Loaded on demand: the Parquet writer is a separate package. */
export async function writeTable(request: TableRequest): Promise<number> {
  return (await import("./write-table.ts")).writeTable(request);
}
