/** Writes one segment of an append log. In: the groups of one write. Out: bytes on disk when the promise resolves. Does
 *  not know entries, and does not decide when to write. */
import { closeSync, constants, openSync, write, writev } from "node:fs";

/** Buffers of one write to one segment. */
export interface WriteGroup {
  readonly segment: number;
  readonly offset: number;
  bytes: number;
  readonly buffers: Uint8Array[];
}

// Each write returns when its data is on disk, so no separate fsync is needed.
const { O_WRONLY, O_CREAT, O_EXCL, O_DSYNC } = constants;

/** Writes into preallocated blocks: if a file grows with every write, the file system writes more metadata than
 *  data. */
export class LogSegmentWriter {
  readonly segment: number;
  readonly #fd: number;
  readonly #zeros: Buffer;
  /** End of the allocated blocks. `#growing` is allocating the blocks after it. */
  #blocks = 0;
  #growing: Promise<void> | undefined;

  constructor(segment: number, path: string, aheadBytes: number) {
    this.segment = segment;
    this.#fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_DSYNC, 0o600);
    this.#zeros = Buffer.alloc(aheadBytes);
  }

  async write({ offset, bytes, buffers }: WriteGroup): Promise<void> {
    const end = offset + bytes;
    // Zeros in flight must not overwrite the bytes written now.
    if (this.#growing !== undefined && end > this.#blocks) await this.#growing;
    await writeAll(this.#fd, buffers, offset);
    this.#blocks = Math.max(this.#blocks, end);
    if (this.#growing === undefined && this.#blocks - end < this.#zeros.length / 2) this.#grow();
  }

  async close(): Promise<void> {
    await this.#growing;
    closeSync(this.#fd);
  }

  #grow(): void {
    const from = this.#blocks;
    this.#growing = writeAll(this.#fd, [this.#zeros], from).then(
      () => {
        this.#blocks = from + this.#zeros.length;
        this.#growing = undefined;
      },
      // A failure is not fatal here: a full disk fails the next entry.
      () => {
        this.#growing = undefined;
      },
    );
  }
}

/** Repeats the write, because a single write may be partial. */
function writeAll(fd: number, buffers: readonly Uint8Array[], position: number): Promise<void> {
  return new Promise((done, failed) => {
    const [first] = buffers;
    const wrote = (error: Error | null, written: number) => {
      if (error !== null) return failed(error);
      let skip = written;
      const left: Uint8Array[] = [];
      for (const buffer of buffers) {
        if (skip < buffer.length) left.push(buffer.subarray(skip));
        skip = Math.max(0, skip - buffer.length);
      }
      if (left.length === 0) done();
      else writeAll(fd, left, position + written).then(done, failed);
    };
    // Almost every write has one buffer, which is cheaper to pass than a list of one.
    if (buffers.length === 1) write(fd, first!, 0, first!.length, position, wrote);
    else writev(fd, buffers, position, wrote);
  });
}
