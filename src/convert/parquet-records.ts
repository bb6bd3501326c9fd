/** Records of a Parquet file, one group of rows at a time. In: a path, the requested columns. Out: values by name,
 *  64-bit integers as numbers, times as ISO 8601. Codecs: none, Snappy, gzip and Brotli. */
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { isObject, type Json, RollbookError, reasonOf } from "../base/index.ts";
import { badRow } from "./foreign-decision.ts";
import { checkFooter } from "./parquet-footer.ts";

interface ParquetRecord {
  readonly value: Readonly<Record<string, Json | undefined>>;
  /** Counts from 1. */
  readonly row: number;
}

const ROWS_AT_ONCE = 4096;

/** `rootOf` returns the column that holds a path such as `request.model`. */
export async function* readParquet(
  file: string,
  columns: readonly string[],
  rootOf: (column: string) => string = (column) => column,
): AsyncGenerator<ParquetRecord> {
  // Loaded on demand, because most logs are text.
  const { parquetReadObjects } = await import("hyparquet");
  const compressors = {
    GZIP: (bytes: Uint8Array) => gunzipSync(bytes),
    BROTLI: (bytes: Uint8Array) => brotliDecompressSync(bytes),
  };
  try {
    const { buffer, metadata, known } = await openParquet(file);
    const wanted = columns.map((name) => (known.includes(name) ? name : rootOf(name)));
    const missing = wanted.filter((name) => !known.includes(name));
    if (missing.length > 0)
      throw badRow(
        { file, line: 0 },
        `there is no column ${missing.map((name) => JSON.stringify(name)).join(", ")}`,
        `It has: ${known.join(", ").slice(0, 400)}`,
      );
    const rows = Number(metadata.num_rows);
    for (let from = 0; from < rows; from += ROWS_AT_ONCE) {
      const to = Math.min(rows, from + ROWS_AT_ONCE);
      const options = {
        file: buffer,
        metadata,
        columns: [...new Set(wanted)],
        rowStart: from,
        rowEnd: to,
        compressors,
      };
      const found = await parquetReadObjects(options);
      for (const [i, each] of found.entries()) yield { value: plainValues(each), row: from + i + 1 };
    }
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

/** The names of the file's top-level columns. */
export async function parquetColumns(file: string): Promise<string[]> {
  try {
    return (await openParquet(file)).known;
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

async function openParquet(file: string) {
  const { asyncBufferFromFile, parquetMetadataAsync, parquetSchema } = await import("hyparquet");
  const buffer = await asyncBufferFromFile(file);
  await requireMagic(file, buffer);
  await checkEnd(buffer);
  const metadata = await parquetMetadataAsync(buffer);
  return { buffer, metadata, known: parquetSchema(metadata).children.map(({ element }) => element.name) };
}

/** A Parquet file begins with the four letters PAR1. */
async function requireMagic(file: string, buffer: { slice(start: number, end?: number): unknown }) {
  const begin = Buffer.from((await buffer.slice(0, 4)) as ArrayBuffer).toString("latin1");
  if (begin === "PAR1") return;
  throw new RollbookError(
    "bad-row",
    { file },
    `${file} is not a Parquet file. Name the format that it has with --format, or write it again.`,
  );
}

/** A file ends with its footer, the footer's length in 4 bytes, and 4 letters. The parser reports too short a file. */
async function checkEnd(file: {
  byteLength: number;
  slice(start: number, end?: number): unknown;
}): Promise<void> {
  const { byteLength: size } = file;
  const at = size - 8;
  if (at < 0) return;
  const length = new DataView((await file.slice(at, size)) as ArrayBuffer).getUint32(0, true);
  if (length <= at) checkFooter(new Uint8Array((await file.slice(at - length, at)) as ArrayBuffer));
}

function unreadable(file: string, cause: unknown): RollbookError {
  if (cause instanceof RollbookError) return cause;
  if ((cause as NodeJS.ErrnoException).code === "ENOENT")
    return new RollbookError("no-file", { file }, `${file} does not exist. Check the path.`, { cause });
  return new RollbookError(
    "bad-row",
    { file },
    `${file} cannot be read as Parquet: ${reasonOf(cause)}. Write it again without compression or with Snappy, or convert it to CSV.`,
    { cause },
  );
}

function plainValues(record: Record<string, unknown>): ParquetRecord["value"] {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, plainValue(value)]));
}

/** Converts to JSON values: integers as numbers, times as ISO 8601, null for a missing value. */
function plainValue(value: unknown): Json {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Date) return value.toISOString();
  if (Array.isArray(value)) return value.map(plainValue);
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (!isObject(value)) return (value ?? null) as Json;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plainValue(each)]));
}
