/** Reads entries of an append log by their places. In: the directory of the log. Out: payloads, checked. Opens segments
 *  read-only, so it can run beside the log, also in another thread. Does not search for entries, and does not notice
 *  that an entry was released. */
import { closeSync, openSync, readSync } from "node:fs";
import { damaged, type LogPlace, readEntry, segmentPath } from "./log-entry.ts";

/** A segment that the log has removed uses disk space until it is closed here. */
const OPEN_SEGMENTS = 4;

export class LogReader {
  readonly #directory: string;
  readonly #open = new Map<number, number>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Payload of an entry that is on disk. */
  read({ segment, offset, bytes }: LogPlace): Buffer {
    const block = Buffer.allocUnsafe(bytes);
    const read = readSync(this.#segment(segment), block, 0, bytes, offset);
    const entry = readEntry(block.subarray(0, read), 0, { segment, offset });
    if (entry !== undefined) return entry.payload;
    throw damaged(segmentPath(this.#directory, segment), offset, "is not what was written there");
  }

  /** Closes the files; the next read opens them again as needed. */
  close(): void {
    for (const fd of this.#open.values()) closeSync(fd);
    this.#open.clear();
  }

  #segment(segment: number): number {
    const known = this.#open.get(segment);
    if (known !== undefined) return known;
    if (this.#open.size >= OPEN_SEGMENTS) this.close();
    const fd = openSync(segmentPath(this.#directory, segment), "r");
    this.#open.set(segment, fd);
    return fd;
  }
}
