/** Holds bytes in a bounded number of chunks. In: chunks of any size. Out: the same bytes, in order. */

/** This many small chunks are joined into one: a chunk costs a multiple of its bytes in memory. */
const MANY_CHUNKS = 1024;

export class ChunkList {
  readonly list: Buffer[] = [];
  /** Index of the first chunk that has not been joined. */
  #loose = 0;

  push(chunk: Buffer): void {
    this.list.push(chunk);
    if (this.list.length - this.#loose < MANY_CHUNKS) return;
    this.list.push(Buffer.concat(this.list.splice(this.#loose)));
    this.#loose = this.list.length;
  }

  whole(): Buffer {
    return this.list.length === 1 ? this.list[0]! : Buffer.concat(this.list);
  }
}
