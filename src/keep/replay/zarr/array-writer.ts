/** Writes one array, rows in order, chunk by chunk, in memory bounded by a few chunks (or one shard).
 *  In: rows as typed arrays or strings. Out: objects in a store, `zarr.json` last, and their digests. An array exists
 *  once `close` has written its metadata. Does not fsync, and does not extend finished arrays. */
import { type Digest, RollbookError } from "../../../base/index.ts";
import {
  type BytesCodec,
  bytesOver,
  type DataType,
  defaultFill,
  emptyValues,
  encodeBytes,
  encodeStrings,
  fillValues,
  isValuesOf,
  itemBytes,
  type NumericValues,
  parseFill,
  ShardBuilder,
  type ValuesOf,
} from "./codecs/index.ts";
import { type ArrayDigests, digestArray, digestChunk } from "./digests.ts";
import {
  type ArrayMetadata,
  type Attributes,
  chunkKey,
  formatNode,
  MAX_CHUNK_BYTES,
  metadataKey,
  parseNode,
} from "./metadata.ts";
import { eachInFlight, type MaybePromise, type Store } from "./store.ts";

export interface ArrayOptions<T extends DataType> {
  dtype: T;
  /** Shape of one row: [] (default) for a column, [8] for rows of eight. */
  row?: readonly number[];
  /** Rows per chunk; by default about 1 MB, or 4 096 strings. */
  chunkRows?: number;
  /** Expected number of rows, if known: chunks are then made equal, so that the last chunk needs little padding. */
  expectedRows?: number;
  /** Chunks per shard; 0 (default) makes every chunk a separate object. */
  shardChunks?: number;
  compressor?: { name: "gzip" | "zstd"; level: number };
  /** A checksum after every chunk; on by default. */
  crc32c?: boolean;
  attributes?: Attributes;
  dimensionNames?: readonly (string | null)[];
  /** Hash function for stored objects. */
  digest?: (bytes: Uint8Array) => Digest;
}

export interface WrittenArray {
  readonly path: string;
  readonly metadata: ArrayMetadata;
  readonly digests: ArrayDigests;
}

/** Starts an array at `path`. An array that fits in one chunk becomes one object of exactly its size. */
export function createArray<T extends DataType>(
  store: Store,
  path: string,
  options: ArrayOptions<T>,
): ArrayWriter<T> {
  return new ArrayWriter(store, path, options);
}

const CHUNK_BYTES = 1 << 20;
const CHUNK_STRINGS = 1 << 12;
/** Chunks that are being stored while the next one is encoded and hashed. */
const IN_FLIGHT = 4;

export class ArrayWriter<T extends DataType = DataType> {
  readonly path: string;
  readonly #store: Store;
  readonly #plan: ArrayMetadata;
  readonly #fill: boolean | number | bigint | string;
  /** Items per row. */
  readonly #width: number;
  readonly #digest: (bytes: Uint8Array) => Digest;
  #shard: ShardBuilder | undefined;
  readonly #digests: Digest[] = [];
  /** The chunk under construction, or its first rows; allocated when first needed. Only `#pendingRows` rows of it count. */
  #pending: ValuesOf[T] | undefined;
  #pendingRows = 0;
  #rows = 0;
  #objects = 0;
  #state: "open" | "busy" | "failed" | "closed" = "open";

  constructor(store: Store, path: string, options: ArrayOptions<T>) {
    this.#store = store;
    this.path = path;
    this.#plan = checkedPlan(path, options);
    this.#fill = parseFill(options.dtype, this.#plan.fillValue, path);
    this.#width = (options.row ?? []).reduce((product, size) => product * size, 1);
    this.#digest = options.digest ?? digestChunk;
    const { shardRows, chunkRows } = this.#plan;
    this.#shard = shardRows > 0 ? new ShardBuilder(shardRows / chunkRows) : undefined;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Adds whole rows. The caller may reuse the memory of `values` when the promise is fulfilled. */
  append(values: ValuesOf[T]): Promise<void> {
    return this.#exclusively("open", async () => {
      this.#refuseBad(values);
      const rows = values.length / this.#width;
      const { chunkRows } = this.#plan;
      let at = 0;
      if (this.#pendingRows > 0) {
        at = Math.min(rows, chunkRows - this.#pendingRows);
        this.#stage(values, 0, at);
        if (this.#pendingRows === chunkRows) await this.#flushPending();
      }
      const whole = Math.floor((rows - at) / chunkRows);
      const [first, from] = [this.#objects, at];
      // Whole chunks are written directly from the caller's memory. Chunks of a shard must keep their order.
      await eachInFlight(whole, this.#shard === undefined ? IN_FLIGHT : 1, (i) =>
        this.#writeChunk(this.#slice(values, from + i * chunkRows, from + (i + 1) * chunkRows), first + i),
      );
      if (this.#shard === undefined) this.#objects += whole;
      this.#stage(values, at + whole * chunkRows, rows);
      this.#rows += rows;
    });
  }

  /** Writes pending rows and then the metadata, which makes the array visible. */
  close(): Promise<WrittenArray> {
    return this.#exclusively("closed", async () => {
      const metadata = this.#finalMetadata();
      if (metadata.shardRows === 0) this.#shard = undefined;
      if (this.#pendingRows > 0) {
        this.#pending = this.#slice(this.#roomFor(metadata.chunkRows), 0, metadata.chunkRows);
        fillValues(this.#pending, this.#fill, [this.#pendingRows * this.#width, this.#pending.length]);
        await this.#flushPending();
      }
      if (this.#shard !== undefined && this.#shard.chunks > 0)
        await this.#put(this.#shard.finish(), this.#objects++);
      const bytes = formatNode(metadata);
      await this.#store.set(metadataKey(this.path), bytes);
      const digests = { chunks: this.#digests, array: digestArray(bytes, this.#digests) };
      return { path: this.path, metadata, digests };
    });
  }

  /** An array of a single chunk needs no padding and no shard. */
  #finalMetadata(): ArrayMetadata {
    const shape: [number, ...number[]] = [this.#rows, ...this.#plan.shape.slice(1)];
    const single = this.#rows === this.#pendingRows;
    return single
      ? { ...this.#plan, shape, chunkRows: Math.max(1, this.#rows), shardRows: 0 }
      : { ...this.#plan, shape };
  }

  #stage(values: ValuesOf[T], from: number, to: number): void {
    if (from === to) return;
    const pending = this.#roomFor(this.#pendingRows + to - from);
    const at = this.#pendingRows * this.#width;
    if (Array.isArray(values)) {
      for (let i = from * this.#width, o = at; i < to * this.#width; )
        (pending as string[])[o++] = values[i++]!;
    } else {
      (pending as Uint8Array).set(this.#slice(values, from, to) as Uint8Array, at);
    }
    this.#pendingRows += to - from;
  }

  /** Grows the chunk with its rows. A segment has a hundred arrays, and allocating whole chunks for a few rows is expensive. */
  #roomFor(rows: number): ValuesOf[T] {
    const before = this.#pending;
    const needed = rows * this.#width;
    if (before !== undefined && before.length >= needed) return before;
    const { dtype, chunkRows } = this.#plan;
    const most = chunkRows * this.#width;
    const grown = emptyValues(dtype as T, Math.min(most, Math.max(needed, 2 * (before?.length ?? 0))));
    if (Array.isArray(before)) for (const [i, text] of before.entries()) (grown as string[])[i] = text;
    else if (before !== undefined) (grown as Uint8Array).set(before as Uint8Array);
    this.#pending = grown;
    return grown;
  }

  async #flushPending(): Promise<void> {
    await this.#writeChunk(this.#pending!, this.#objects);
    if (this.#shard === undefined) this.#objects++;
    this.#pendingRows = 0;
  }

  /** Encodes one chunk and adds it to the shard, or without shards puts it into the store as object `index`. */
  #writeChunk(values: ValuesOf[T], index: number): MaybePromise<void> {
    const raw = Array.isArray(values) ? encodeStrings(values) : bytesOver(values as NumericValues);
    if (raw.length > MAX_CHUNK_BYTES)
      throw bad(this.path, `a chunk has ${raw.length} bytes; use fewer chunkRows`);
    const encoded = encodeBytes(this.#plan.codecs, raw);
    const place = (bytes: Uint8Array) =>
      this.#shard === undefined ? this.#put(bytes, index) : this.#addTo(this.#shard, bytes);
    return encoded instanceof Promise ? encoded.then(place) : place(encoded);
  }

  #addTo(shard: ShardBuilder, bytes: Uint8Array): MaybePromise<void> {
    shard.add(bytes);
    if (shard.full) return this.#put(shard.finish(), this.#objects++);
  }

  /** The store may write in the background while the bytes are hashed. */
  #put(bytes: Uint8Array, index: number): MaybePromise<void> {
    const value = this.#store.borrows ? bytes : Uint8Array.from(bytes);
    const writing = this.#store.set(chunkKey(this.path, this.#plan, index), value);
    this.#digests[index] = this.#digest(bytes);
    if (writing instanceof Promise) return writing.then(() => undefined);
  }

  #slice(values: ValuesOf[T], from: number, to: number): ValuesOf[T] {
    const [start, end] = [from * this.#width, to * this.#width];
    if (start === 0 && end === values.length) return values;
    return (Array.isArray(values) ? values.slice(start, end) : values.subarray(start, end)) as ValuesOf[T];
  }

  #refuseBad(values: ValuesOf[T]): void {
    const { dtype } = this.#plan;
    if (!isValuesOf(dtype, values)) throw bad(this.path, `the values are not an array for ${dtype}`);
    if (values.length % this.#width !== 0)
      throw bad(this.path, `${values.length} items are not a whole number of rows of ${this.#width}`);
    if (dtype === "bool" && (values as Uint8Array).some((byte) => byte > 1))
      throw bad(this.path, "a bool is neither 0 nor 1");
  }

  /** One call at a time, because chunks have an order. After a failure the writer cannot continue. */
  async #exclusively<R>(next: "open" | "closed", work: () => Promise<R>): Promise<R> {
    if (this.#state !== "open")
      throw bad(this.path, `the writer is ${this.#state}; await each append, and close it once`);
    this.#state = "busy";
    try {
      const result = await work();
      this.#state = next;
      return result;
    } catch (error) {
      this.#state = "failed";
      throw error;
    }
  }
}

/** Refuses metadata that a reader would refuse, before anything is written. */
function checkedPlan<T extends DataType>(path: string, options: ArrayOptions<T>): ArrayMetadata {
  const plan = planOf(path, options);
  parseNode(formatNode(plan), path);
  return plan;
}

/** Metadata of the array before its length is known. */
function planOf<T extends DataType>(path: string, options: ArrayOptions<T>): ArrayMetadata {
  const { dtype, row = [], shardChunks = 0, compressor, crc32c = true, dimensionNames } = options;
  for (const size of row) refuseCount(path, "row", { size, least: 1 });
  refuseCount(path, "shardChunks", { size: shardChunks, least: 0 });
  const chunkRows = options.chunkRows ?? defaultChunkRows(options);
  refuseCount(path, "chunkRows", { size: chunkRows, least: 1 });
  const codecs: BytesCodec[] = [];
  if (compressor?.name === "gzip") codecs.push({ name: "gzip", level: compressor.level });
  if (compressor?.name === "zstd") codecs.push({ name: "zstd", level: compressor.level, checksum: false });
  if (crc32c) codecs.push({ name: "crc32c" });
  return {
    kind: "array",
    dtype,
    shape: [0, ...row],
    chunkRows,
    shardRows: shardChunks * chunkRows,
    codecs,
    fillValue: defaultFill(dtype),
    separator: "/",
    attributes: options.attributes ?? {},
    dimensionNames,
  };
}

function defaultChunkRows({ dtype, row = [], expectedRows = 0 }: ArrayOptions<DataType>): number {
  const items = row.reduce((product, size) => product * size, 1);
  const most =
    dtype === "string"
      ? Math.floor(CHUNK_STRINGS / items)
      : Math.floor(CHUNK_BYTES / (items * itemBytes(dtype)));
  if (expectedRows <= most) return Math.max(1, most);
  return Math.ceil(expectedRows / Math.ceil(expectedRows / Math.max(1, most)));
}

function refuseCount(path: string, name: string, { size, least }: { size: number; least: number }): void {
  if (!Number.isSafeInteger(size) || size < least)
    throw bad(path, `${name} ${size} is not a whole number of at least ${least}`);
}

function bad(path: string, what: string): RollbookError {
  return new RollbookError(
    "zarr-bad-write",
    { path },
    `${path}: ${what}. Fix the call that writes this array.`,
  );
}
