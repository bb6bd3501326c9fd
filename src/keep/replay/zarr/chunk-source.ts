/** The chunks of one stored array: where each lies, and its checked values.
 *  In: a store and the metadata. Out: whole decoded chunks, or parts of uncompressed ones read in place.
 *  Short, long, missing and altered objects are errors; nothing reads as zeros. Knows no rows beyond its chunks. */
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

/** Part of a stored object. */
interface ChunkPlace {
  key: string;
  offset: number;
  /** Stored bytes; undefined for an object that is one chunk. */
  length: number | undefined;
}

export class ChunkSource<T extends DataType> {
  readonly metadata: ArrayMetadata;
  /** Chunks that hold rows of the array. */
  readonly count: number;
  /** Stored objects: shards, or else chunks. */
  readonly objects: number;
  /** Items per chunk. */
  readonly items: number;
  readonly #store: ReadableStore;
  readonly #path: string;
  readonly #chunksPerObject: number;
  /** Bytes of a decoded chunk; 0 for strings. */
  readonly #bytes: number;
  readonly #crc: boolean;
  /** Uncompressed: rows lie in the object as they are. */
  readonly #plain: boolean;
  readonly #intact: Uint8Array;
  /** 16 bytes per chunk of the shards touched so far. */
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

  /** The key of a stored object. */
  key(object: number): string {
    return chunkKey(this.#path, this.metadata, object);
  }

  /** All items of a chunk, padding included, in `into` if given. `bulk` reads of large chunks run in the background,
   *  several at a time; others are for use at once. */
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

  /** Memory for `load` into that is used again and again; undefined where it is of no use. */
  buffer(): ValuesOf[T] | undefined {
    const { dtype } = this.metadata;
    return dtype === "string" ? undefined : (valuesOver(dtype, checksumMemory(this.#bytes)) as ValuesOf[T]);
  }

  /** Whether parts of this chunk may be read in place: it is uncompressed, and its checksum, if it has one, was found
   *  right before. */
  readable(chunk: number): boolean {
    return this.#plain && (!this.#crc || this.#intact[chunk] === 1);
  }

  /** A function that reads bytes of a `readable` chunk from an offset within it. */
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

  /** The stored bytes of an object. */
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

  /** Answers whether the chunk is there. */
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

  /** The same in pieces, each checked as soon as it is read: faster than first one, then the other. */
  #readPieces(chunk: number, { key, offset, length }: ChunkPlace, values: ValuesOf[T]): boolean {
    const bytes = bytesOver(values as NumericValues);
    const trailer = new Uint8Array(this.#crc ? CRC_BYTES : 0);
    const [step, stored] = [this.#store.readsAtOnce!, bytes.length + trailer.length];
    const read = (part: Uint8Array, at: number): boolean => {
      const size = readInto(this.#store, key, { parts: [part], offset: offset + at }) as number | undefined;
      if (size !== undefined) this.#checkLength({ chunk, size, length, stored });
      return size !== undefined;
    };
    // The first bytes read say whether the chunk is there, and how long it is.
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

  /** An object that is one chunk must have exactly its bytes; a chunk in a shard has the length the index says. */
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
