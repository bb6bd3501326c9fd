/** A write-ahead log: small appends, and one durable write for all waiters.
 *  In: entries of any bytes. Out: `<number>.log` segment files, which log-reader.ts reads. A write starts when the
 *  previous one has ended and a turn of the event loop adds no entry; there is no timer. A segment is removed when its
 *  last entry is released. One process per directory. Does not know what the entries mean: see log-entry.ts for their
 *  form. */
import { readdirSync } from "node:fs";
import { RollbookError } from "../../base/index.ts";
import {
  GroupCommit,
  makeDirectory,
  syncDirectory,
  unlinkIfThere,
  type Waiter,
  WriteBlock,
} from "../disk/index.ts";
import { writeError } from "../pack/index.ts";
import {
  HEADER_BYTES,
  headerOf,
  type LogEntry,
  type LogPlace,
  readSegment,
  segmentPath,
  writeHeader,
} from "./log-entry.ts";
import { LogSegmentWriter, type WriteGroup } from "./segment-writer.ts";

export type { LogEntry, LogPlace };

/** At this length the log continues in a new segment. */
const SEGMENT_BYTES = 64 * 1024 * 1024;
/** With this many entries a write starts without waiting for more. */
const GATHERED = 16;
/** The same limit right after a write, during which entries have already gathered. */
const ENOUGH = 8;
/** A larger entry is not copied: it is written from its own buffers. */
const COPIED_BYTES = 128 * 1024;
/** Zeros that are preallocated ahead of the entries. */
const AHEAD_BYTES = 1024 * 1024;
const NAME = /^(\d{10})\.log$/;

export class AppendLog {
  readonly #directory: string;
  readonly #segmentBytes: number;
  /** Number of unreleased entries per segment. */
  readonly #live = new Map<number, number>();
  #segment: number;
  #offset = 0;
  /** Number of the next write in the current segment. */
  #write = 1;
  /** Groups of the next write, by segment. */
  #pending: WriteGroup[] = [];
  #pendingBytes = 0;
  #writingBytes = 0;
  readonly #block = new WriteBlock();
  #writer: LogSegmentWriter | undefined;
  readonly #commits = new GroupCommit({
    commit: () => this.#writePending(),
    // A write costs this thread as much as twenty entries. Entries of the next turns of the event loop join it, until a
    // turn adds none. A busy process therefore makes few large writes; an idle process writes at once.
    gather: (start, isNext) => {
      if (isNext && this.#commits.added >= ENOUGH) start();
      else setImmediate(this.#gather, start, 0);
    },
    enough: GATHERED,
    failsForGood: true,
  });
  #failure: unknown;
  #isClosed = false;

  private constructor(directory: string, options: { segment: number; segmentBytes: number }) {
    this.#directory = directory;
    this.#segment = options.segment;
    this.#segmentBytes = options.segmentBytes;
  }

  /** Passes every entry of an earlier process to `visit`. The entries stay until they are released. */
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
    // Never append to a file that a crash may have torn.
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

  /** True if a write has failed: then the log accepts no more entries. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** Bytes that are not on disk yet, including the write in flight. */
  get pendingBytes(): number {
    return this.#pendingBytes + this.#writingBytes;
  }

  /** Segment of the next entry. */
  get nextSegment(): number {
    return this.#offset >= this.#segmentBytes ? this.#segment + 1 : this.#segment;
  }

  /** Adds an entry. Its bytes must not change until it is on disk, except those of the first part. */
  append(parts: readonly (string | Uint8Array)[]): LogPlace {
    if (this.#failure !== undefined) throw this.#failed();
    if (this.#isClosed) throw this.#closed();
    if (this.#offset >= this.#segmentBytes) this.#leaveSegment();
    let most = HEADER_BYTES;
    for (const part of parts) most += typeof part === "string" ? 3 * part.length : part.length;
    const place = most > COPIED_BYTES ? this.#refer(parts) : this.#copy(parts, most);
    this.#group().bytes += place.bytes;
    this.#offset += place.bytes;
    this.#pendingBytes += place.bytes;
    this.#commits.add();
    this.#hold(place.segment);
    return place;
  }

  /** Calls the waiter when everything appended before is on disk; the write starts within `withinMs`. */
  whenDurable(waiter: Waiter, withinMs = 0): void {
    if (this.#failure !== undefined) waiter.lost(this.#failed());
    else this.#commits.whenDurable(waiter, withinMs);
  }

  /** Resolves when everything appended before is on disk. */
  flush(withinMs = 0): Promise<void> {
    return this.#failure === undefined ? this.#commits.flush(withinMs) : Promise.reject(this.#failed());
  }

  /** Marks an entry as no longer needed. */
  release({ segment }: LogPlace): void {
    const live = this.#live.get(segment) ?? 0;
    // Continuing would remove a segment that still holds entries of others.
    if (live === 0)
      throw new RollbookError(
        "released-twice",
        { directory: this.#directory, segment },
        `segment ${segment} of the journal has no entry left to release: one was released twice. Restart; what is in the journal is taken up.`,
      );
    this.#live.set(segment, live - 1);
    if (live === 1) this.#dropIfDone(segment);
  }

  /** Removes segments of earlier processes without unreleased entries. */
  tidy(): void {
    for (const segment of [...this.#live.keys()]) this.#dropIfDone(segment);
  }

  /** Resolves when everything is on disk. The log accepts no more entries, because another process may write here
   *  then. */
  async close(): Promise<void> {
    this.#isClosed = true;
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

  /** Keeps the current segment, and any segment that the next write still needs. */
  #dropIfDone(segment: number): void {
    if (this.#live.get(segment) !== 0) return;
    if (segment === this.#segment && this.#offset < this.#segmentBytes) return;
    if (segment === this.#writer?.segment || this.#pending.some((group) => group.segment === segment)) return;
    this.#live.delete(segment);
    unlinkIfThere(this.#path(segment));
  }

  /** Write group for an entry that is appended now. */
  #group(): WriteGroup {
    const last = this.#pending.at(-1);
    if (last?.segment === this.#segment) return last;
    if (last !== undefined) this.#block.cutInto(last.buffers);
    const group = { segment: this.#segment, offset: this.#offset, bytes: 0, buffers: [] };
    this.#pending.push(group);
    return group;
  }

  #copy(parts: readonly (string | Uint8Array)[], most: number): LogPlace {
    const { buffers } = this.#group();
    if (!this.#block.hasRoom(most)) {
      this.#block.cutInto(buffers);
      this.#block.turn();
    }
    const { bytes: block, used: start } = this.#block;
    let end = start + HEADER_BYTES;
    for (const part of parts) {
      if (typeof part === "string") end += block.write(part, end);
      else {
        block.set(part, end);
        end += part.length;
      }
    }
    const place = { segment: this.#segment, offset: this.#offset, bytes: end - start };
    writeHeader(block, start, { place, write: this.#write });
    this.#block.takeUpTo(end);
    return place;
  }

  #refer(parts: readonly (string | Uint8Array)[]): LogPlace {
    const payload = parts.map((part, i) =>
      typeof part === "string" ? Buffer.from(part) : i === 0 ? Uint8Array.from(part) : part,
    );
    const bytes = payload.reduce((sum, { length }) => sum + length, HEADER_BYTES);
    const place = { segment: this.#segment, offset: this.#offset, bytes };
    const header = headerOf(payload, { place, write: this.#write });
    const { buffers } = this.#group();
    this.#block.cutInto(buffers);
    buffers.push(header, ...payload);
    return place;
  }

  readonly #gather = (start: () => void, seen: number): void => {
    const now = this.#commits.added;
    if (now > seen && now < GATHERED) setImmediate(this.#gather, start, now);
    else start();
  };

  async #writePending(): Promise<void> {
    const groups = this.#pending;
    this.#block.cutInto(groups.at(-1)!.buffers);
    const block = this.#block.turn();
    this.#pending = [];
    this.#writingBytes = this.#pendingBytes;
    this.#pendingBytes = 0;
    this.#write++;
    try {
      for (const group of groups) await this.#writeGroup(group);
    } catch (error) {
      // The state of a failed write on disk is unknown, so this log accepts nothing more.
      this.#failure = error;
      throw error;
    }
    this.#block.giveBack(block);
    this.#writingBytes = 0;
  }

  async #writeGroup(group: WriteGroup): Promise<void> {
    const path = this.#path(group.segment);
    try {
      if (this.#writer?.segment !== group.segment) await this.#beginSegment(group.segment, path);
      await this.#writer!.write(group);
    } catch (cause) {
      throw writeError(path, cause);
    }
  }

  async #beginSegment(segment: number, path: string): Promise<void> {
    const before = this.#writer;
    this.#writer = new LogSegmentWriter(segment, path, Math.min(AHEAD_BYTES, this.#segmentBytes));
    syncDirectory(this.#directory);
    if (before === undefined) return;
    await before.close();
    this.#dropIfDone(before.segment);
  }

  #path(segment: number): string {
    return segmentPath(this.#directory, segment);
  }

  #closed(): RollbookError {
    return new RollbookError(
      "log-closed",
      { directory: this.#directory },
      "the journal is closed: nothing can be recorded any more. Start the gateway again.",
    );
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
