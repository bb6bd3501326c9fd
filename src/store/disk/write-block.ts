/** Buffers bytes on their way to a file. Many entries go out as one buffer, because the cost of a write depends more on
 *  the number of buffers than on bytes. One block is filled while the other is written. Does no I/O. */

const BLOCK_BYTES = 512 * 1024;

export class WriteBlock {
  #block: Buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #cutAt = 0;
  #used = 0;
  #spare: Buffer | undefined;

  /** The block; its first `used` bytes are taken. */
  get bytes(): Buffer {
    return this.#block;
  }

  get used(): number {
    return this.#used;
  }

  /** True if the block has room for `bytes` more. */
  hasRoom(bytes: number): boolean {
    return this.#block.length - this.#used >= bytes;
  }

  takeUpTo(end: number): void {
    this.#used = end;
  }

  /** Adds the bytes taken since the last cut to the buffers of a write. */
  cutInto(buffers: Uint8Array[]): void {
    if (this.#used > this.#cutAt) buffers.push(this.#block.subarray(this.#cutAt, this.#used));
    this.#cutAt = this.#used;
  }

  /** Starts another block after this one is cut. Returns the full block; the caller gives it back when it is
   *  written. */
  turn(): Buffer {
    const full = this.#block;
    this.#block = this.#spare ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#spare = undefined;
    this.#cutAt = 0;
    this.#used = 0;
    return full;
  }

  giveBack(block: Buffer): void {
    this.#spare = block;
  }
}
