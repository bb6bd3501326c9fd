/** A log that is written ahead of everything else: small to append to, durable by one write for all that wait.
 *  In: entries of any bytes. Out: `<number>.log` segment files, which log-reader.ts reads. A write begins as soon as the
 *  one before it has ended and nothing more comes at once; there is no timer. A segment goes when its last
 *  entry is released. One process per directory; does not know what the entries mean: see
 *  log-entry.ts for their form. */
import { readdirSync } from "node:fs";
import { RollbookError } from "../base/index.ts";
import { syncDirectory, unlinkIfThere } from "./files.ts";
import {
  entryHeader,
  HEADER_BYTES,
  type LogEntry,
  type LogPlace,
  readSegment,
  segmentPath,
} from "./log-entry.ts";
import { makeDirectory } from "./make-directory.ts";
import { writeError } from "./pack-writer.ts";
import { SegmentWriter, type WriteGroup } from "./segment-writer.ts";

export type { LogEntry, LogPlace };

/** A segment is left behind once it is this long. */
const SEGMENT_BYTES = 64 * 1024 * 1024;
/** Entries for which nobody has to wait any longer. */
const GATHERED = 16;
/** Zeros that are written ahead of the entries. */
const AHEAD_BYTES = 1024 * 1024;
const NAME = /^(\d{10})\.log$/;

export class AppendLog {
  readonly #directory: string;
  readonly #segmentBytes: number;
  /** Entries of each segment that nobody has released. */
  readonly #live = new Map<number, number>();
  #segment: number;
  #offset = 0;
  /** Number of the next write in the segment that is being filled. */
  #write = 1;
  /** What the next write takes along, by segment. */
  #pending: WriteGroup[] = [];
  #pendingBytes = 0;
  #pendingEntries = 0;
  #writer: SegmentWriter | undefined;
  /** The write under way, and the one that will take what is pending. */
  #writing: Promise<void> | undefined;
  #scheduled: Promise<void> | undefined;
  #failure: unknown;

  private constructor(directory: string, options: { segment: number; segmentBytes: number }) {
    this.#directory = directory;
    this.#segment = options.segment;
    this.#segmentBytes = options.segmentBytes;
  }

  /** Hands every entry that an earlier process left to `visit`; they stay until they are released. */
  static open(
    directory: string,
    visit: (entry: LogEntry) => void,
    { segmentBytes = SEGMENT_BYTES }: { segmentBytes?: number } = {},
  ): AppendLog {
    makeDirectory(directory);
    const numbers = readdirSync(directory).flatMap((name) => {
      const [, number] = NAME.exec(name) ?? [];
      return number === undefined ? [] : [Number(number)];
    });
    numbers.sort((a, b) => a - b);
    // Never into a file that a crash may have left torn.
    const log = new AppendLog(directory, { segment: (numbers.at(-1) ?? 0) + 1, segmentBytes });
    for (const segment of numbers) {
      log.#live.set(segment, 0);
      for (const entry of readSegment(log.#path(segment), segment)) {
        log.#hold(segment);
        visit(entry);
      }
    }
    return log;
  }

  /** Whether a write has failed: then nothing more is taken. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Bytes that no write has taken yet. */
  get pendingBytes(): number {
    return this.#pendingBytes;
  }

  /** Adds an entry, which must not change until `flush` resolves. */
  append(parts: readonly Uint8Array[]): LogPlace {
    if (this.#failure !== undefined) throw this.#failed();
    if (this.#offset >= this.#segmentBytes) this.#leaveSegment();
    let payload = 0;
    for (const part of parts) payload += part.length;
    const place = { segment: this.#segment, offset: this.#offset, bytes: HEADER_BYTES + payload };
    let group = this.#pending.at(-1);
    if (group?.segment !== place.segment) {
      group = { segment: place.segment, offset: place.offset, bytes: 0, buffers: [] };
      this.#pending.push(group);
    }
    group.bytes += place.bytes;
    group.buffers.push(entryHeader(place, this.#write, parts), ...parts);
    this.#offset += place.bytes;
    this.#pendingBytes += place.bytes;
    this.#pendingEntries++;
    this.#hold(place.segment);
    return place;
  }

  /** Resolves when everything appended before is on disk. */
  flush(): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failed());
    if (this.#pending.length === 0) return this.#writing ?? Promise.resolve();
    this.#scheduled ??= this.#schedule();
    return this.#scheduled;
  }

  /** Says that an entry is not needed any more. */
  release({ segment }: LogPlace): void {
    const left = this.#live.get(segment)! - 1;
    this.#live.set(segment, left);
    if (left === 0) this.#dropIfDone(segment);
  }

  /** Removes the segments in which nothing is left of earlier processes. */
  tidy(): void {
    for (const segment of [...this.#live.keys()]) this.#dropIfDone(segment);
  }

  async close(): Promise<void> {
    try {
      await this.flush();
    } finally {
      await this.#writer?.close();
      this.#writer = undefined;
      this.#offset = this.#segmentBytes;
      this.tidy();
    }
  }

  #hold(segment: number): void {
    this.#live.set(segment, (this.#live.get(segment) ?? 0) + 1);
  }

  #leaveSegment(): void {
    const left = this.#segment++;
    this.#offset = 0;
    this.#write = 1;
    if (this.#live.get(left) === 0) this.#dropIfDone(left);
  }

  /** The segment that is being filled stays, and so does one that the next write still goes to. */
  #dropIfDone(segment: number): void {
    if (this.#live.get(segment) !== 0) return;
    if (segment === this.#segment && this.#offset < this.#segmentBytes) return;
    if (segment === this.#writer?.segment || this.#pending.some((group) => group.segment === segment)) return;
    this.#live.delete(segment);
    unlinkIfThere(this.#path(segment));
  }

  #schedule(): Promise<void> {
    const commit: Promise<void> = this.#writePending(this.#writing, () => {
      this.#writing = commit;
      this.#scheduled = undefined;
    }).then(
      () => {
        if (this.#writing === commit) this.#writing = undefined;
      },
      (error) => {
        // What reached the disk of a failed write is unknown: nothing more is promised by this log.
        this.#failure = error;
        throw error;
      },
    );
    return commit;
  }

  async #writePending(before: Promise<void> | undefined, onStart: () => void): Promise<void> {
    await before;
    await this.#gather();
    onStart();
    const groups = this.#pending;
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#pendingEntries = 0;
    this.#write++;
    for (const group of groups) {
      const path = this.#path(group.segment);
      try {
        if (this.#writer?.segment !== group.segment) await this.#beginSegment(group.segment, path);
        await this.#writer!.write(group);
      } catch (cause) {
        throw writeError(path, cause);
      }
    }
  }

  /** A write costs this thread as much as twenty entries do. What comes in the next turns of the event loop goes along,
   *  until one brings nothing: a busy process writes seldom and much, an idle one at once. */
  async #gather(): Promise<void> {
    let seen: number;
    do {
      seen = this.#pendingEntries;
      await new Promise(setImmediate);
    } while (this.#pendingEntries > seen && this.#pendingEntries < GATHERED);
  }

  async #beginSegment(segment: number, path: string): Promise<void> {
    const before = this.#writer;
    this.#writer = new SegmentWriter(segment, path, Math.min(AHEAD_BYTES, this.#segmentBytes));
    syncDirectory(this.#directory);
    if (before === undefined) return;
    await before.close();
    this.#dropIfDone(before.segment);
  }

  #path(segment: number): string {
    return segmentPath(this.#directory, segment);
  }

  #failed(): RollbookError {
    return new RollbookError(
      "log-failed",
      { directory: this.#directory },
      "an earlier write to the journal failed. Stop the gateway, repair the disk, start it again.",
      { cause: this.#failure },
    );
  }
}
