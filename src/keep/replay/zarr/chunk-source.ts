/** The chunks of one stored array: their places and their checked values.
 *  In: a store and the metadata. Out: whole decoded chunks, or parts of uncompressed chunks read in place. Short, long,
 *  missing and altered objects are errors; missing data is never read as zeros. Does not know rows beyond its
 *  chunks. */
import { RollbookError } from "../../../base/index.ts";
import {
  bytesOver,
  CRC_BYTES,
  checksumMemory,
  type DataType,
  damaged,
  decodeBytes,
  decodeStrings,
  emptyValues,
  type FixedType,
  indexBytes,
  itemBytes,
  type NumericValues,
  parseShardIndex,
  type ShardIndex,
  type ValuesOf,
  valuesOver,
  verifyCrc,
} from "./codecs/index.ts";
import { type ArrayMetadata, chunkKey, MAX_CHUNK_BYTES, rowItems } from "./metadata.ts";
import { type MaybePromise, type ReadableStore, readInto } from "./store.ts";

interface ChunkLoadOptions<T extends DataType> {
  into?: ValuesOf[T] | undefined;
  bulk?: boolean;
}

/** Place of a chunk in a stored object. */
interface ChunkPlace {
  key: string;
  offset: number;
  /** Stored bytes; undefined if the object is one chunk. */
  length: number | undefined;
}

export class ChunkSource<T extends DataType> {
  readonly metadata: ArrayMetadata;
  /** Number of chunks that hold rows of the array. */
  readonly count: number;
  /** Number of stored objects: shards, or chunks if there are no shards. */
  readonly objects: number;
  /** Items per chunk. */
  readonly items: number;
  readonly #store: ReadableStore;
  readonly #path: string;
  readonly #chunksPerObject: number;
  /** Bytes of a decoded chunk; 0 for strings. */
  readonly #bytes: number;
  readonly #crc: boolean;
  /** True if chunks are uncompressed: rows are stored in the object unchanged. */
  readonly #plain: boolean;
  readonly #intact: Uint8Array;
  /** Index of each shard touched so far: 16 bytes per chunk. */
  readonly #indexes = new Map<number, ShardIndex>();

  constructor(store: ReadableStore, path: string, metadata: ArrayMetadata) {
    const { dtype, shape, chunkRows, shardRows, codecs } = metadata;
    this.#store = store;
    this.#path = path;
    this.metadata = metadata;
    this.count = Math.ceil(shape[0] / chunkRows);
    this.objects = Math.ceil(shape[0] / (shardRows || chunkRows));
    this.items = chunkRows * rowItems(metadata);
    this.#chunksPerObject = shardRows === 0 ? 1 : shardRows / chunkRows;
    this.#bytes = dtype === "string" ? 0 : this.items * itemBytes(dtype);
    this.#crc = codecs.length === 1 && codecs[0]!.name === "crc32c";
    this.#plain = dtype !== "string" && (codecs.length === 0 || this.#crc);
    this.#intact = new Uint8Array(this.#plain && this.#crc ? this.count : 0);
  }

  /** Key of a stored object. */
  key(object: number): string {
    return chunkKey(this.#path, this.metadata, object);
  }

  /** All items of a chunk, including padding, in `into` if given. `bulk` reads of large chunks run in the background,
   *  several at a time; other reads are for immediate use. */
  async load(chunk: number, { into, bulk = false }: ChunkLoadOptions<T> = {}): Promise<ValuesOf[T]> {
    const place = await this.#place(chunk);
    if (this.metadata.dtype === "string") return (await this.#loadStrings(chunk, place)) as ValuesOf[T];
    if (!this.#plain)
      return (await this.#loadCompressed(chunk, { place, into: into as NumericValues })) as ValuesOf[T];
    const values = into ?? emptyValues(this.metadata.dtype as T, this.items);
    const pieces = !bulk && this.#store.readsAtOnce !== undefined;
    const found = pieces
      ? this.#readPieces(chunk, place, values)
      : await this.#readWhole(chunk, place, values);
    if (!found) throw this.#missing(this.#where(chunk));
    return values;
  }

  /** Reusable memory for `load`; undefined for strings, which cannot use it. */
  buffer(): ValuesOf[T] | undefined {
    const { dtype } = this.metadata;
    return dtype === "string" ? undefined : (valuesOver(dtype, checksumMemory(this.#bytes)) as ValuesOf[T]);
  }

  /** True if parts of this chunk may be read in place: it is uncompressed, and its checksum, if any, was verified
   *  before. */
  readable(chunk: number): boolean {
    return this.#plain && (!this.#crc || this.#intact[chunk] === 1);
  }

  /** Returns a function that reads bytes of a `readable` chunk from an offset within it. */
  async reader(chunk: number): Promise<(part: Uint8Array, offset: number) => MaybePromise<void>> {
    const { key, offset, length } = await this.#place(chunk);
    const stored = this.#bytes + (this.#crc ? CRC_BYTES : 0);
    const check = (size: number | undefined) => this.#checkLength({ chunk, size, length, stored });
    return (part, at) => {
      const size = readInto(this.#store, key, { parts: [part], offset: offset + at });
      if (size instanceof Promise) return size.then(check);
      check(size);
    };
  }

  /** Stored bytes of an object. */
  async object(object: number): Promise<Uint8Array> {
    const key = this.key(object);
    const bytes = await this.#store.get(key);
    if (bytes === undefined) throw this.#missing(key);
    return bytes;
  }

  async #place(chunk: number): Promise<ChunkPlace> {
    const object = Math.floor(chunk / this.#chunksPerObject);
    const key = this.key(object);
    if (this.metadata.shardRows === 0) return { key, offset: 0, length: undefined };
    const index = await this.#index(object, key);
    const at = chunk - object * this.#chunksPerObject;
    const [offset, length] = [index.offsets[at]!, index.lengths[at]!];
    if (length < 0) throw this.#missing(this.#where(chunk));
    return { key, offset, length };
  }

  async #index(shard: number, key: string): Promise<ShardIndex> {
    const known = this.#indexes.get(shard);
    if (known !== undefined) return known;
    const bytes = new Uint8Array(indexBytes(this.#chunksPerObject));
    const size = await readInto(this.#store, key, { parts: [bytes], offset: -bytes.length });
    if (size === undefined) throw this.#missing(key);
    if (size < bytes.length) throw damaged(key, `is ${size} bytes, too short for its index`);
    const index = parseShardIndex(bytes, size - bytes.length, key);
    this.#indexes.set(shard, index);
    return index;
  }

  /** Returns true if the chunk exists. */
  async #readWhole(
    chunk: number,
    { key, offset, length }: ChunkPlace,
    values: ValuesOf[T],
  ): Promise<boolean> {
    const bytes = bytesOver(values as NumericValues);
    const trailer = new Uint8Array(this.#crc ? CRC_BYTES : 0);
    const size = await readInto(this.#store, key, { parts: this.#crc ? [bytes, trailer] : [bytes], offset });
    if (size === undefined) return false;
    this.#checkLength({ chunk, size, length, stored: bytes.length + trailer.length });
    if (this.#crc) this.#verify(chunk, { bytes, trailer });
    return true;
  }

  /** As #readWhole, in pieces that are checked right after they are read: faster than reading everything first. */
  #readPieces(chunk: number, { key, offset, length }: ChunkPlace, values: ValuesOf[T]): boolean {
    const bytes = bytesOver(values as NumericValues);
    const trailer = new Uint8Array(this.#crc ? CRC_BYTES : 0);
    const [step, stored] = [this.#store.readsAtOnce!, bytes.length + trailer.length];
    const read = (part: Uint8Array, at: number): boolean => {
      const size = readInto(this.#store, key, { parts: [part], offset: offset + at }) as number | undefined;
      if (size !== undefined) this.#checkLength({ chunk, size, length, stored });
      return size !== undefined;
    };
    // The first read finds out if the chunk exists, and its length.
    if (!read(trailer, bytes.length)) return false;
    let done = 0;
    const fetch = (end: number) => {
      for (; done < end; done += step) read(bytes.subarray(done, done + step), done);
    };
    if (this.#crc) this.#verify(chunk, { bytes, trailer, fetch });
    else fetch(bytes.length);
    return true;
  }

  #verify(
    chunk: number,
    { bytes, trailer, fetch }: { bytes: Uint8Array; trailer: Uint8Array; fetch?: (end: number) => void },
  ): void {
    const where = this.#where(chunk);
    verifyCrc(bytes, trailer, fetch === undefined ? { where } : { where, fetch });
    this.#intact[chunk] = 1;
  }

  async #loadCompressed(
    chunk: number,
    { place, into }: { place: ChunkPlace; into: NumericValues | undefined },
  ): Promise<NumericValues> {
    const dtype = this.metadata.dtype as FixedType;
    const stored = await this.#stored(chunk, place);
    const context = { where: this.#where(chunk), size: { exactly: this.#bytes } };
    const bytes = await decodeBytes(this.metadata.codecs, stored, context);
    if (into === undefined) return valuesOver(dtype, bytes);
    bytesOver(into).set(bytes);
    return into;
  }

  async #loadStrings(chunk: number, place: ChunkPlace): Promise<string[]> {
    const stored = await this.#stored(chunk, place);
    const where = this.#where(chunk);
    const bytes = await decodeBytes(this.metadata.codecs, stored, {
      where,
      size: { atMost: MAX_CHUNK_BYTES },
    });
    return decodeStrings(bytes, this.items, where);
  }

  async #stored(chunk: number, { key, offset, length }: ChunkPlace): Promise<Uint8Array> {
    if (length === undefined) return this.object(chunk);
    const bytes = new Uint8Array(length);
    const size = await readInto(this.#store, key, { parts: [bytes], offset });
    this.#checkLength({ chunk, size, length, stored: length });
    return bytes;
  }

  /** An object that is one chunk must have exactly the expected bytes; a chunk in a shard has the length in the
   *  index. */
  #checkLength({
    chunk,
    size,
    length,
    stored,
  }: {
    chunk: number;
    size: number | undefined;
    length: number | undefined;
    stored: number;
  }): void {
    if (size === undefined) throw this.#missing(this.#where(chunk));
    const actual = length ?? size;
    if (actual !== stored)
      throw damaged(this.#where(chunk), `is ${actual} bytes, the metadata says ${stored}`);
  }

  #where(chunk: number): string {
    const object = Math.floor(chunk / this.#chunksPerObject);
    return this.metadata.shardRows === 0 ? this.key(chunk) : `chunk ${chunk} in ${this.key(object)}`;
  }

  #missing(what: string): RollbookError {
    return new RollbookError(
      "zarr-missing-chunk",
      { path: this.#path, what },
      `${what} is missing. Restore it from a copy or write the array again.`,
    );
  }
}
