/** Reads one array: whole, by row range, chunk by chunk, or arbitrary rows.
 *  In: a store and a path. Out: typed arrays (or strings), rows one after another. Beyond the result, memory is bounded
 *  by a few chunks and the cache. Does not write. */
import { type Digest, RollbookError } from "../../../base/index.ts";
import { type CacheShelf, ChunkCache } from "./chunk-cache.ts";
import { ChunkSource } from "./chunk-source.ts";
import {
  bytesOver,
  type DataType,
  emptyValues,
  isValuesOf,
  itemBytes,
  type NumericValues,
  type ValuesOf,
} from "./codecs/index.ts";
import { type ArrayDigests, digestArray, digestChunk } from "./digests.ts";
import { type ArrayMetadata, metadataKey, parseNode, rowItems } from "./metadata.ts";
import { eachInFlight, type ReadableStore } from "./store.ts";

interface OpenOptions {
  /** Known metadata, for example from a consolidated group; otherwise `zarr.json` is read. */
  metadata?: ArrayMetadata;
  /** Size of the cache of decoded chunks for `gather` and partial reads; 16 MiB by default. */
  cacheBytes?: number;
  /** Shared cache for several arrays, instead of an own cache. */
  cache?: ChunkCache;
}

/** Rows `from` … `to` (exclusive) of an array. */
interface RowRange {
  from?: number;
  to?: number;
}

interface Chunk<T extends DataType> {
  from: number;
  to: number;
  values: ValuesOf[T];
}

export async function openArray<T extends DataType = DataType>(
  store: ReadableStore,
  path: string,
  options: OpenOptions = {},
): Promise<ZarrArray<T>> {
  const metadata = options.metadata ?? (await readArrayMetadata(store, path)).metadata;
  return new ZarrArray(store, path, { ...options, metadata });
}

/** Recomputes the digests of an array from its stored bytes, for comparison with those of `ArrayWriter.close`. */
export async function digestStoredArray(store: ReadableStore, path: string): Promise<ArrayDigests> {
  const { metadata, bytes } = await readArrayMetadata(store, path);
  const source = new ChunkSource(store, path, metadata);
  const chunks: Digest[] = [];
  await eachInFlight(source.objects, IN_FLIGHT, async (object) => {
    chunks[object] = digestChunk(await source.object(object));
  });
  return { chunks, array: digestArray(bytes, chunks) };
}

const IN_FLIGHT = 4;
const CACHE_BYTES = 16 * 2 ** 20;
/** A read in place costs about as much as copying this many bytes. If that exceeds the chunk, decode the chunk. */
const BYTES_PER_READ = 8192;

export class ZarrArray<T extends DataType = DataType> {
  readonly path: string;
  readonly metadata: ArrayMetadata;
  readonly dtype: T;
  readonly rows: number;
  /** Items per row. */
  readonly width: number;
  readonly #source: ChunkSource<T>;
  readonly #cache: CacheShelf<ValuesOf[T]>;
  readonly #rowBytes: number;

  constructor(store: ReadableStore, path: string, options: OpenOptions & { metadata: ArrayMetadata }) {
    const { metadata, cacheBytes = CACHE_BYTES, cache = new ChunkCache(cacheBytes) } = options;
    this.path = path;
    this.metadata = metadata;
    this.dtype = metadata.dtype as T;
    this.rows = metadata.shape[0];
    this.width = rowItems(metadata);
    this.#rowBytes = metadata.dtype === "string" ? 0 : this.width * itemBytes(metadata.dtype);
    this.#source = new ChunkSource(store, path, metadata);
    this.#cache = cache.shelf();
  }

  /** Rows of the range (all by default), in `into` if given. */
  async read(range: RowRange & { into?: ValuesOf[T] } = {}): Promise<ValuesOf[T]> {
    const [from, to] = this.#range(range);
    const out = this.#target(range.into, to - from);
    const { chunkRows } = this.metadata;
    const first = Math.floor(from / chunkRows);
    await eachInFlight(Math.ceil(to / chunkRows) - first, IN_FLIGHT, (i) => {
      const start = (first + i) * chunkRows;
      const [low, high] = [Math.max(from, start), Math.min(to, start + chunkRows)];
      return this.#readPart(first + i, { low: low - start, high: high - start, out, at: low - from });
    });
    return out;
  }

  /** Chunk by chunk. With `reuse` the values are valid only until the next step, and no memory is allocated per
   *  chunk. */
  async *chunks(range: RowRange & { reuse?: boolean } = {}): AsyncGenerator<Chunk<T>, void, undefined> {
    const [from, to] = this.#range(range);
    const { chunkRows } = this.metadata;
    const into = range.reuse ? this.#source.buffer() : undefined;
    for (let start = from - (from % chunkRows); start < to; start += chunkRows) {
      const values = await this.#source.load(start / chunkRows, { into });
      const [low, high] = [Math.max(from, start), Math.min(to, start + chunkRows)];
      yield { from: low, to: high, values: this.#rowsOf(values, low - start, high - start) };
    }
  }

  /** The given rows, in the given order; repeats are allowed. Uncompressed rows are read in place, after the checksum
   *  of their chunk (if any) was verified. Other chunks are decoded once per call and cached. */
  async gather(rows: ArrayLike<number>, into?: ValuesOf[T]): Promise<ValuesOf[T]> {
    const out = this.#target(into, rows.length);
    const { heads, next } = this.#groupByChunk(rows);
    const chunks = [...heads.keys()];
    await eachInFlight(chunks.length, IN_FLIGHT, (i) =>
      this.#gatherChunk(chunks[i]!, { rows, out, head: heads.get(chunks[i]!)!, next }),
    );
    return out;
  }

  /** Copies rows `low` … `high` of a chunk to row `at` of `out`. */
  async #readPart(
    chunk: number,
    { low, high, out, at }: { low: number; high: number; out: ValuesOf[T]; at: number },
  ): Promise<void> {
    if (Array.isArray(out)) {
      const texts = (await this.#decoded(chunk)) as string[];
      const shift = (at - low) * this.width;
      for (let i = low * this.width; i < high * this.width; i++) out[i + shift] = texts[i]!;
      return;
    }
    const part = this.#rowsOf(out, at, at + high - low);
    if (high - low === this.metadata.chunkRows) {
      await this.#source.load(chunk, { into: part, bulk: true });
      return;
    }
    const reader = this.#source.readable(chunk) ? await this.#source.reader(chunk) : undefined;
    if (reader !== undefined) return reader(bytesOver(part as NumericValues), low * this.#rowBytes);
    (part as Uint8Array).set(this.#rowsOf(await this.#decoded(chunk), low, high) as Uint8Array);
  }

  async #gatherChunk(
    chunk: number,
    { rows, out, head, next }: { rows: ArrayLike<number>; out: ValuesOf[T]; head: number; next: Int32Array },
  ): Promise<void> {
    const start = chunk * this.metadata.chunkRows;
    const few = countFrom(head, next) * BYTES_PER_READ < this.#source.items * (this.#rowBytes / this.width);
    const inPlace = few && this.#source.readable(chunk) && !this.#cache.has(chunk);
    const reader = inPlace ? await this.#source.reader(chunk) : undefined;
    if (reader === undefined) {
      const [source, target] = [lanes(await this.#decoded(chunk)), lanes(out)];
      const size = target.length / rows.length;
      for (let i = head; i >= 0; i = next[i]!)
        for (let from = (rows[i]! - start) * size, to = i * size; to < (i + 1) * size; )
          target[to++] = source[from++]!;
      return;
    }
    const bytes = bytesOver(out as NumericValues);
    const size = this.#rowBytes;
    for (let i = head; i >= 0; i = next[i]!) {
      const reading = reader(bytes.subarray(i * size, (i + 1) * size), (rows[i]! - start) * size);
      if (reading instanceof Promise) await reading;
    }
  }

  /** Linked lists: `heads` has one position of each chunk touched, `next` leads to the others and ends in −1. */
  #groupByChunk(rows: ArrayLike<number>): { heads: Map<number, number>; next: Int32Array } {
    const heads = new Map<number, number>();
    const next = new Int32Array(rows.length);
    const { chunkRows } = this.metadata;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (!(row >= 0 && row < this.rows && Number.isInteger(row)))
        throw this.#bad(`has rows 0 … ${this.rows - 1}, not ${row}`);
      const chunk = Math.floor(row / chunkRows);
      next[i] = heads.get(chunk) ?? -1;
      heads.set(chunk, i);
    }
    return { heads, next };
  }

  async #decoded(chunk: number): Promise<ValuesOf[T]> {
    const known = this.#cache.get(chunk);
    if (known !== undefined) return known;
    const values = await this.#source.load(chunk);
    this.#cache.put(chunk, values, sizeOf(values));
    return values;
  }

  #rowsOf(values: ValuesOf[T], from: number, to: number): ValuesOf[T] {
    const [start, end] = [from * this.width, to * this.width];
    if (start === 0 && end === values.length) return values;
    return (Array.isArray(values) ? values.slice(start, end) : values.subarray(start, end)) as ValuesOf[T];
  }

  #target(into: ValuesOf[T] | undefined, rows: number): ValuesOf[T] {
    if (into === undefined) return emptyValues(this.dtype, rows * this.width);
    if (isValuesOf(this.dtype, into) && into.length === rows * this.width) return into;
    throw this.#bad(`fills ${rows * this.width} items of ${this.dtype}, but \`into\` is not that`);
  }

  #range({ from = 0, to = this.rows }: RowRange): [number, number] {
    if (Number.isInteger(from) && Number.isInteger(to) && 0 <= from && from <= to && to <= this.rows)
      return [from, to];
    throw this.#bad(`has ${this.rows} rows, not ${from} … ${to}`);
  }

  #bad(what: string): RollbookError {
    return new RollbookError("zarr-bad-read", { path: this.path }, `${this.path} ${what}. Fix the call.`);
  }
}

async function readArrayMetadata(
  store: ReadableStore,
  path: string,
): Promise<{ metadata: ArrayMetadata; bytes: Uint8Array }> {
  const key = metadataKey(path);
  const bytes = await store.get(key);
  const metadata = bytes && parseNode(bytes, key);
  if (bytes !== undefined && metadata?.kind === "array") return { metadata, bytes };
  throw new RollbookError(
    "zarr-no-array",
    { path },
    `there is no array at ${path}${metadata === undefined ? "" : ", but a group"}. Check the path.`,
  );
}

/** The same memory as integers of at most 32 bits: copying floats one by one may change the bits of a NaN. */
function lanes(values: NumericValues | string[]): Int32Array {
  const wide = !Array.isArray(values) && values.BYTES_PER_ELEMENT > 2;
  const view = wide ? new Int32Array(values.buffer, values.byteOffset, values.byteLength / 4) : values;
  return view as Int32Array;
}

function countFrom(head: number, next: Int32Array): number {
  let count = 0;
  for (let i = head; i >= 0; i = next[i]!) count++;
  return count;
}

/** Bytes in memory; an estimate for strings. */
function sizeOf(values: NumericValues | string[]): number {
  if (!Array.isArray(values)) return values.byteLength;
  return values.reduce((sum, string) => sum + 24 + string.length, 0);
}
