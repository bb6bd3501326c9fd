/** Reads the columns of one segment, checked against the schema: types, shapes and row counts.
 *  In: a Zarr store with the metadata of its arrays. Out: typed arrays by row range, or arbitrary rows. Row numbers are
 *  those of the segment. Does not check values. */
import { RollbookError } from "../../../base/index.ts";
import {
  type ArrayMetadata,
  type ChunkCache,
  type NodeMetadata,
  openArray,
  type ReadableStore,
  type ZarrArray,
} from "../zarr/index.ts";
import {
  arrayPaths,
  type ColumnName,
  type ColumnSpec,
  type ColumnsOf,
  type ColumnValues,
  columnOf,
  rowShape,
  type TableName,
} from "./schema.ts";

interface SegmentShape {
  readonly rows: Readonly<Record<string, number>>;
  readonly maxCandidates: number;
}

/** Rows of a block: bounds the memory of a walk over a table. */
const BLOCK_ROWS = 65_536;

/** Decoded chunks kept per array if no cache is shared. One chunk is enough for a walk in order. */
const WALK_CACHE_BYTES = 5 << 18;

export class SegmentReader {
  readonly store: ReadableStore;
  readonly shape: SegmentShape;
  readonly #metadata: ReadonlyMap<string, NodeMetadata>;
  readonly #arrays = new Map<string, Promise<ZarrArray>>();
  readonly #cache: ChunkCache | undefined;
  #texts: Promise<readonly string[]> | undefined;

  constructor(
    store: ReadableStore,
    {
      metadata,
      cache,
      ...shape
    }: SegmentShape & { metadata: ReadonlyMap<string, NodeMetadata>; cache?: ChunkCache | undefined },
  ) {
    this.store = store;
    this.shape = shape;
    this.#metadata = metadata;
    this.#cache = cache;
  }

  rows(table: TableName): number {
    return this.shape.rows[table] ?? 0;
  }

  /** Metadata of an array in the schema; opening the segment has checked it. */
  metadataOf(path: string): ArrayMetadata {
    return this.#metadata.get(path) as ArrayMetadata;
  }

  array<T extends TableName>(table: T, column: ColumnName<T>): Promise<ZarrArray> {
    const path = `${table}/${column}`;
    const known = this.#arrays.get(path);
    if (known !== undefined) return known;
    const metadata = this.#metadata.get(path);
    const fault = metadataFault(metadata, columnOf(table, column), {
      rows: this.rows(table),
      maxCandidates: this.shape.maxCandidates,
    });
    if (fault !== undefined)
      throw new RollbookError(
        "replay-bad-array",
        { path },
        `${path} ${fault}. Restore the store from a copy.`,
      );
    const opening = openArray(this.store, path, {
      metadata: metadata as ArrayMetadata,
      ...(this.#cache === undefined ? { cacheBytes: WALK_CACHE_BYTES } : { cache: this.#cache }),
    });
    this.#arrays.set(path, opening);
    return opening;
  }

  /** Rows `from` … `to` of some columns. */
  async read<T extends TableName, C extends ColumnName<T>>(
    table: T,
    columns: readonly C[],
    range: { from?: number; to?: number } = {},
  ): Promise<ColumnsOf<T, C>> {
    const values = await Promise.all(
      columns.map(async (name) => (await this.array(table, name)).read(range)),
    );
    return Object.fromEntries(columns.map((name, i) => [name, values[i]])) as ColumnsOf<T, C>;
  }

  /** Some columns of a table, `rows` rows at a time. */
  async *blocks<T extends TableName, C extends ColumnName<T>>(
    table: T,
    columns: readonly C[],
    rows = BLOCK_ROWS,
  ): AsyncGenerator<{ from: number; to: number; columns: ColumnsOf<T, C> }> {
    const total = this.rows(table);
    for (let from = 0; from < total; from += rows) {
      const to = Math.min(total, from + rows);
      yield { from, to, columns: await this.read(table, columns, { from, to }) };
    }
  }

  /** The given rows of one column, in the given order. */
  async gather<T extends TableName, C extends ColumnName<T>>(
    table: T,
    column: C,
    rows: ArrayLike<number>,
  ): Promise<ColumnValues<T, C>> {
    return (await (await this.array(table, column)).gather(rows)) as ColumnValues<T, C>;
  }

  /** Texts that dictionary columns refer to. Read once and cached. */
  texts(): Promise<readonly string[]> {
    this.#texts ??= this.read("dictionary", ["text"]).then(({ text }) => text);
    return this.#texts;
  }
}

/** Reason why an array does not match its column; undefined if it does. */
export function metadataFault(
  metadata: NodeMetadata | undefined,
  spec: ColumnSpec,
  { rows, maxCandidates }: { rows: number; maxCandidates: number },
): string | undefined {
  if (metadata?.kind !== "array") return metadata === undefined ? "is missing" : "is a group, not an array";
  if (metadata.dtype !== spec.dtype) return `holds ${metadata.dtype}, the schema says ${spec.dtype}`;
  const expected = [rows, ...rowShape(spec, maxCandidates)];
  if (String(metadata.shape) !== String(expected))
    return `has shape [${metadata.shape}], the manifest says [${expected}]`;
  return undefined;
}

/** Description of the first array of the schema that does not match the metadata of a segment. */
export function firstMetadataFault(
  metadata: ReadonlyMap<string, NodeMetadata>,
  { rows, maxCandidates }: SegmentShape,
): string | undefined {
  for (const { path, table, spec } of arrayPaths()) {
    const fault = metadataFault(metadata.get(path), spec, { rows: rows[table] ?? 0, maxCandidates });
    if (fault !== undefined) return `${path} ${fault}`;
  }
  return undefined;
}
