/** Rows as a Parquet file: Snappy pages, one row group after the other, so that memory is bounded by one group.
 *  In: rows, columns, key-value metadata. Out: bytes to a new file. */
import { ByteWriter, ParquetWriter, type SchemaElement } from "hyparquet-writer";
import type { NewFile } from "../new-file.ts";
import { rowGroups } from "../row-groups.ts";
import { elementsOf, isFloat, type ParquetColumn } from "./parquet-columns.ts";

const FLUSH_BYTES = 1 << 20;

interface ParquetRows<Row> {
  readonly rows: AsyncIterable<Row>;
  readonly columns: readonly ParquetColumn<Row>[];
  /** Share of a row group that a row fills, in values. */
  sizeOf(row: Row): number;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Returns the number of rows. */
export async function writeParquetRows<Row>(
  { rows, columns, sizeOf, metadata }: ParquetRows<Row>,
  file: NewFile,
): Promise<number> {
  const parquet = new ParquetWriter({
    writer: new FileBytes(file),
    schema: schemaOf(columns),
    kvMetadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
  });
  let count = 0;
  for await (const group of rowGroups(rows, sizeOf)) {
    await parquet.write({
      columnData: columns.map((column) => dataOf(column, group)),
      rowGroupSize: group.length,
    });
    count += group.length;
  }
  await parquet.finish();
  return count;
}

function dataOf<Row>({ name, type, value }: ParquetColumn<Row>, rows: readonly Row[]) {
  const data = rows.map(value);
  // A dictionary would treat 0 and -0 as one value.
  return isFloat(type)
    ? { name, data, encoding: "PLAIN" as const, offsetIndex: false }
    : { name, data, offsetIndex: false };
}

function schemaOf<Row>(columns: readonly ParquetColumn<Row>[]): SchemaElement[] {
  return [
    { name: "rows", num_children: columns.length },
    ...columns.flatMap(({ name, type }) => elementsOf(name, type)),
  ];
}

/** Buffers the bytes of the Parquet writer, and flushes them to a file in large pieces. */
class FileBytes extends ByteWriter {
  readonly #file: NewFile;

  constructor(file: NewFile) {
    super(FLUSH_BYTES);
    this.#file = file;
  }

  override ensure(size: number): void {
    if (this.index > FLUSH_BYTES) this.flush();
    super.ensure(size);
  }

  flush(): void {
    this.#file.append(this.getBytes().slice());
    this.index = 0;
  }

  override finish(): void {
    this.flush();
  }
}
