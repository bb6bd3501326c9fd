/** The most recently used chunks, up to a number of bytes. */
export class ChunkCache<V> {
  readonly #limit: number;
  /** Least recently used first. */
  readonly #entries = new Map<number, { value: V; bytes: number }>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  has(chunk: number): boolean {
    return this.#entries.has(chunk);
  }

  get(chunk: number): V | undefined {
    const entry = this.#entries.get(chunk);
    if (entry === undefined) return undefined;
    this.#entries.delete(chunk);
    this.#entries.set(chunk, entry);
    return entry.value;
  }

  /** A value larger than the whole cache is not kept. */
  put(chunk: number, value: V, bytes: number): void {
    this.#drop(chunk);
    if (bytes > this.#limit) return;
    this.#entries.set(chunk, { value, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#limit) break;
      this.#drop(oldest);
    }
  }

  #drop(chunk: number): void {
    const entry = this.#entries.get(chunk);
    if (entry === undefined) return;
    this.#entries.delete(chunk);
    this.#bytes -= entry.bytes;
  }
}
