/** Bytes that come in pieces of any size, held in not too many of them. In: chunks. Out: the same bytes, in order. */

/** Small chunks are joined once there are so many: each costs a multiple of its bytes in memory. */
const MANY_CHUNKS = 1024;

export class ChunkList {
  readonly list: Buffer[] = [];
  /** Where the chunks begin that have not been joined. */
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
