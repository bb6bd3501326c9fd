/** Bytes on their way to a file, side by side: what many entries bring goes out as one buffer, because a write costs by
 *  the buffer more than by the byte. One block is filled while the other is written. Does no I/O. */

const BLOCK_BYTES = 512 * 1024;

export class WriteBlock {
  #block: Buffer = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #cutAt = 0;
  #used = 0;
  #spare: Buffer | undefined;

  /** The block, of which `used` bytes are taken. */
  get bytes(): Buffer {
    return this.#block;
  }

  get used(): number {
    return this.#used;
  }

  /** Whether so many bytes more have room in it. */
  hasRoom(bytes: number): boolean {
    return this.#block.length - this.#used >= bytes;
  }

  takeUpTo(end: number): void {
    this.#used = end;
  }

  /** Adds what was taken since the last cut to the buffers of a write. */
  cutInto(buffers: Uint8Array[]): void {
    if (this.#used > this.#cutAt) buffers.push(this.#block.subarray(this.#cutAt, this.#used));
    this.#cutAt = this.#used;
  }

  /** Begins another block, once this one is cut. Returns the one that was full, to be given back when it is written. */
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
