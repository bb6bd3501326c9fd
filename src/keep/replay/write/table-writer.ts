/** Writes one table: rows one by one or column blocks, each column as a separate array.
 *  In: rows as the schema declares them. Out: arrays in a store. Holds a block of rows and one chunk per column. */

import { given } from "../../../base/index.ts";
import {
  type ColumnName,
  type ColumnSpec,
  type ColumnsOf,
  type ColumnValues,
  rowShape,
  type TABLES,
  type TableName,
  tableOf,
} from "../tables/index.ts";
import {
  type ArrayWriter,
  bytesOver,
  createArray,
  type DataType,
  emptyValues,
  itemBytes,
  type NumericValues,
  type Store,
  type WrittenArray,
} from "../zarr/index.ts";

/** Storage layout of arrays. */
export interface Layout {
  /** "none" (default) allows readers to read single rows in place; the others save space. Every chunk has a crc32c. */
  readonly codec?: "none" | "zstd" | "gzip";
  /** Bytes of a chunk before compression; by default about 1 MB, or 64 KiB if compressed. */
  readonly chunkBytes?: number;
  /** Chunks per stored object; 0 (default) makes every chunk an object. Use 16 or more with small chunks; compressed
   *  columns default to 16. */
  readonly shardChunks?: number;
}

/** A compressed chunk is decoded as a whole for a single row. Small chunks keep random reads cheap; shards keep the
 *  number of files low. */
const COMPRESSED = { chunkBytes: 1 << 16, shardChunks: 16 };

type Cell<D extends DataType, C> = C extends { row: readonly number[] }
  ? Uint8Array
  : D extends "string"
    ? string
    : D extends "bool"
      ? boolean
      : D extends "int64" | "uint64"
        ? bigint
        : number;
/** One row as an object. */
export type RowOf<T extends TableName> = {
  [C in ColumnName<T>]: (typeof TABLES)[T]["columns"][C] extends { dtype: infer D extends DataType }
    ? Cell<D, (typeof TABLES)[T]["columns"][C]>
    : never;
};

const BLOCK_ROWS = 4096;

interface TableOptions {
  readonly layout: Layout;
  readonly maxCandidates?: number;
  readonly expectedRows?: number;
}

export class TableWriter<T extends TableName = TableName> {
  readonly #columns: Readonly<Record<string, { writer: ArrayWriter; buffer: ColumnBuffer }>>;
  #rows = 0;
  #buffered = 0;

  constructor(store: Store, table: T, options: TableOptions) {
    this.#columns = Object.fromEntries(
      Object.entries(tableOf(table).columns).map(([column, spec]) => [
        column,
        { writer: columnWriter(store, { table, column, spec, options }), buffer: new ColumnBuffer(spec) },
      ]),
    );
  }

  get rows(): number {
    return this.#rows;
  }

  /** Adds a row to the block in memory; `drain` writes full blocks. Returns its row number. */
  add(row: RowOf<T>): number {
    for (const column in this.#columns) this.#columns[column]!.buffer.push(row[column as keyof RowOf<T>]);
    this.#buffered++;
    return this.#rows++;
  }

  /** Adds whole columns after all earlier rows. Pass every column, all of one length. */
  async append(columns: ColumnsOf<T>, rows: number): Promise<void> {
    if (this.#buffered > 0) await this.#flush();
    for (const [name, { writer }] of Object.entries(this.#columns))
      await writer.append(columns[name as ColumnName<T>] as never);
    this.#rows += rows;
  }

  /** Await this regularly between rows: it keeps the block in memory small. */
  async drain(): Promise<void> {
    if (this.#buffered >= BLOCK_ROWS) await this.#flush();
  }

  async close(): Promise<WrittenArray[]> {
    await this.#flush();
    return Promise.all(Object.values(this.#columns).map(({ writer }) => writer.close()));
  }

  async #flush(): Promise<void> {
    for (const { writer, buffer } of Object.values(this.#columns)) {
      await writer.append(buffer.values() as never);
      buffer.clear();
    }
    this.#buffered = 0;
  }
}

/** Appends to some columns of a table only, because the dense view is filled in two passes. */
export function columnWriters<T extends TableName, C extends ColumnName<T>>(
  store: Store,
  table: T,
  { columns, ...options }: TableOptions & { columns: readonly C[] },
): { append(values: ColumnsOf<T, C>): Promise<void>; close(): Promise<WrittenArray[]> } {
  const writers = columns.map((column) => {
    const spec = tableOf(table).columns[column]!;
    return [column, columnWriter(store, { table, column, spec, options })] as const;
  });
  return {
    async append(values) {
      for (const [column, writer] of writers) await writer.append(values[column] as never);
    },
    close: () => Promise.all(writers.map(([, writer]) => writer.close())),
  };
}

function columnWriter(
  store: Store,
  {
    table,
    column,
    spec,
    options: { layout, maxCandidates = 0, expectedRows },
  }: { table: TableName; column: string; spec: ColumnSpec; options: TableOptions },
): ArrayWriter {
  const { codec = "none" } = layout;
  const small = codec !== "none" && spec.dtype !== "string";
  const { chunkBytes, shardChunks } = { ...(small ? COMPRESSED : {}), ...given(layout) } as Layout;
  const row = rowShape(spec, maxCandidates);
  const { dimension } = tableOf(table);
  const items = row.reduce((product, size) => product * size, 1);
  const chunkRows =
    chunkBytes === undefined || spec.dtype === "string"
      ? undefined
      : Math.max(1, Math.floor(chunkBytes / (items * itemBytes(spec.dtype))));
  return createArray(store, `${table}/${column}`, {
    dtype: spec.dtype,
    row,
    ...given({ expectedRows, chunkRows, shardChunks }),
    ...(codec === "none" ? {} : { compressor: { name: codec, level: codec === "zstd" ? 1 : 5 } as const }),
    attributes: attributesOf(spec),
    dimensionNames: [dimension, ...row.map(() => (spec.pad === undefined ? "byte" : "candidate"))],
  }) as ArrayWriter;
}

/** Schema facts of a column, for readers that have only the store. */
export function attributesOf({ doc, references, starts, dictionary }: ColumnSpec): Record<string, string> {
  const target = dictionary ? "dictionary" : references;
  return { description: doc, ...given({ references: target, starts }) } as Record<string, string>;
}

/** Values of one column for the rows in memory; doubles as needed, and is reused after `clear`. */
class ColumnBuffer {
  readonly #spec: ColumnSpec;
  readonly #width: number;
  #values: ColumnValues<TableName, never> | NumericValues | string[];
  #length = 0;

  constructor(spec: ColumnSpec) {
    this.#spec = spec;
    this.#width = (spec.row ?? []).reduce((product, size) => product * size, 1);
    this.#values = emptyValues(spec.dtype, spec.dtype === "string" ? 0 : 64 * this.#width);
  }

  push(cell: string | number | bigint | boolean | Uint8Array): void {
    const values = this.#values as NumericValues | string[];
    if (Array.isArray(values)) {
      values[this.#length++] = cell as string;
      return;
    }
    if (this.#length + this.#width > values.length) this.#grow();
    const target = this.#values as Uint8Array;
    if (typeof cell === "object") target.set(cell, this.#length);
    // Every NaN gets the same bit pattern, because columns are compared by their bits.
    else target[this.#length] = (Number.isNaN(cell) ? Number.NaN : cell) as number;
    this.#length += this.#width;
  }

  values(): NumericValues | string[] {
    const values = this.#values as NumericValues | string[];
    return Array.isArray(values) ? values.slice(0, this.#length) : values.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  #grow(): void {
    const old = this.#values as NumericValues;
    const wider = emptyValues(this.#spec.dtype, old.length * 2) as NumericValues;
    bytesOver(wider).set(bytesOver(old));
    this.#values = wider;
  }
}
