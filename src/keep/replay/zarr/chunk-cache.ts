/** The most recently used chunks of any number of arrays, up to a total number of bytes. */
export class ChunkCache {
  readonly #limit: number;
  /** Least recently used first. */
  readonly #entries = new Map<number, { value: unknown; bytes: number }>();
  #bytes = 0;
  #shelves = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  /** Bytes in the cache now. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Part of the cache for one array. */
  shelf<V>(): CacheShelf<V> {
    const first = this.#shelves++ * CHUNKS;
    return {
      has: (chunk) => this.#entries.has(first + chunk),
      get: (chunk) => this.#get(first + chunk) as V | undefined,
      put: (chunk, value, bytes) => this.#put(first + chunk, value, bytes),
    };
  }

  #get(key: number): unknown {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  #put(key: number, value: unknown, bytes: number): void {
    this.#drop(key);
    if (bytes > this.#limit) return;
    this.#entries.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#limit) break;
      this.#drop(oldest);
    }
  }

  #drop(key: number): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}

/** More chunks than an array can have: keys of two arrays never collide, and stay exact as numbers. */
const CHUNKS = 2 ** 32;

export interface CacheShelf<V> {
  has(chunk: number): boolean;
  get(chunk: number): V | undefined;
  /** A value larger than the whole cache is not cached. */
  put(chunk: number, value: V, bytes: number): void;
}
