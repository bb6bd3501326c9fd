/** Records of a Parquet file, a group of rows at a time. In: a path, the columns wanted. Out: values by name, whole numbers of
 *  64 bits as numbers. Codecs: none, Snappy, gzip and Brotli. */
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { type Json, RollbookError, reasonOf } from "../base/index.ts";
import { badRow } from "./foreign-decision.ts";

export interface ParquetRecord {
  readonly value: Readonly<Record<string, Json | undefined>>;
  /** From 1 on. */
  readonly row: number;
}

const ROWS_AT_ONCE = 4096;

export async function* readParquet(file: string, columns: readonly string[]): AsyncGenerator<ParquetRecord> {
  // Loaded when asked for: most logs are text.
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import("hyparquet");
  const compressors = {
    GZIP: (bytes: Uint8Array) => gunzipSync(bytes),
    BROTLI: (bytes: Uint8Array) => brotliDecompressSync(bytes),
  };
  try {
    const buffer = await asyncBufferFromFile(file);
    const metadata = await parquetMetadataAsync(buffer);
    const known = metadata.schema.map(({ name }) => name);
    const missing = columns.filter((name) => !known.includes(name));
    if (missing.length > 0)
      throw badRow(
        { file, line: 0 },
        `there is no column ${missing.map((name) => JSON.stringify(name)).join(", ")}`,
        `It has: ${known.slice(1).join(", ").slice(0, 400)}`,
      );
    const rows = Number(metadata.num_rows);
    for (let from = 0; from < rows; from += ROWS_AT_ONCE) {
      const to = Math.min(rows, from + ROWS_AT_ONCE);
      const options = {
        file: buffer,
        metadata,
        columns: [...columns],
        rowStart: from,
        rowEnd: to,
        compressors,
      };
      const found = await parquetReadObjects(options);
      for (const [i, each] of found.entries()) yield { value: plainValues(each), row: from + i + 1 };
    }
  } catch (cause) {
    if (cause instanceof RollbookError) throw cause;
    throw new RollbookError(
      "bad-row",
      { file },
      `${file} cannot be read as Parquet: ${reasonOf(cause)}. Write it again without compression or with Snappy, or convert it to CSV.`,
      { cause },
    );
  }
}

function plainValues(record: Record<string, unknown>): ParquetRecord["value"] {
  const entries = Object.entries(record).map(([name, value]) => [
    name,
    typeof value === "bigint" ? Number(value) : value,
  ]);
  return Object.fromEntries(entries) as ParquetRecord["value"];
}
