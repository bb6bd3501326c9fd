/** A log that is written ahead of everything else: small to append to, durable by one write for all that wait.
 *  In: entries of any bytes. Out: `<number>.log` segment files, and the entries again. A write begins as soon as the
 *  one before it has ended and nothing more comes at once; there is no timer. A segment goes when its last
 *  entry is released. One process per directory; does not know what the entries mean.
 *
 *  An entry, little-endian: magic "RBL1", payload length, segment, offset in it, number of its write, CRC-32 of these
 *  20 bytes and the payload; then the payload. */
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  writev,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { RollbookError } from "../base/index.ts";
import { syncDirectory, unlinkIfThere } from "./files.ts";
import { writeError } from "./pack-writer.ts";

export interface LogPlace {
  readonly segment: number;
  readonly offset: number;
  /** With its header. */
  readonly bytes: number;
}

export interface LogEntry {
  readonly place: LogPlace;
  readonly payload: Buffer;
}

const HEADER_BYTES = 24;
const MAGIC = Buffer.from("RBL1", "latin1").readUInt32LE(0);
/** A segment is left behind once it is this long. */
const SEGMENT_BYTES = 64 * 1024 * 1024;
/** Entries for which nobody has to wait any longer. */
const GATHERED = 16;
/** Zeros that are written ahead of the entries. */
const AHEAD_BYTES = 1024 * 1024;
/** What a write takes along. */
interface Group {
  readonly segment: number;
  readonly offset: number;
  bytes: number;
  readonly buffers: Uint8Array[];
}

const NAME = /^(\d{10})\.log$/;
// Each write returns when its data is on disk: no second trip for an fsync.
const { O_WRONLY, O_CREAT, O_EXCL, O_DSYNC } = constants;

export class AppendLog {
  readonly #directory: string;
  readonly #segmentBytes: number;
  /** Entries of each segment that nobody has released. */
  readonly #live = new Map<number, number>();
  readonly #readers = new Map<number, number>();
  #segment: number;
  #offset = 0;
  #batch = 1;
  /** What the next write takes along, by segment. */
  #pending: Group[] = [];
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
    mkdirSync(directory, { recursive: true });
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
    const header = Buffer.allocUnsafe(HEADER_BYTES);
    header.writeUInt32LE(MAGIC, 0);
    header.writeUInt32LE(payload, 4);
    header.writeUInt32LE(place.segment, 8);
    header.writeUInt32LE(place.offset, 12);
    header.writeUInt32LE(this.#batch, 16);
    let sum = crc32(header.subarray(0, 20));
    for (const part of parts) sum = checksum(part, sum);
    header.writeUInt32LE(sum, 20);
    let group = this.#pending.at(-1);
    if (group?.segment !== place.segment) {
      group = { segment: place.segment, offset: place.offset, bytes: 0, buffers: [] };
      this.#pending.push(group);
    }
    group.bytes += place.bytes;
    group.buffers.push(header, ...parts);
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

  /** The payload of an entry that has been flushed. */
  read(place: LogPlace): Buffer {
    let fd = this.#readers.get(place.segment);
    if (fd === undefined) {
      fd = openSync(this.#path(place.segment), "r");
      this.#readers.set(place.segment, fd);
    }
    const block = Buffer.allocUnsafe(place.bytes);
    const bytes = readSync(fd, block, 0, place.bytes, place.offset);
    const entry = readEntry(block.subarray(0, bytes), 0, { segment: place.segment, offset: place.offset });
    if (entry !== undefined) return entry.payload;
    throw damaged(this.#path(place.segment), place.offset);
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
      for (const fd of this.#readers.values()) closeSync(fd);
      this.#readers.clear();
    }
  }

  #hold(segment: number): void {
    this.#live.set(segment, (this.#live.get(segment) ?? 0) + 1);
  }

  #leaveSegment(): void {
    const left = this.#segment++;
    this.#offset = 0;
    if (this.#live.get(left) === 0) this.#dropIfDone(left);
  }

  /** The segment that is being filled stays, and so does one that the next write still goes to. */
  #dropIfDone(segment: number): void {
    if (this.#live.get(segment) !== 0) return;
    if (segment === this.#segment && this.#offset < this.#segmentBytes) return;
    if (segment === this.#writer?.segment || this.#pending.some((group) => group.segment === segment)) return;
    this.#live.delete(segment);
    const fd = this.#readers.get(segment);
    if (fd !== undefined) closeSync(fd);
    this.#readers.delete(segment);
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
    this.#batch++;
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
    return join(this.#directory, `${String(segment).padStart(10, "0")}.log`);
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

/** Writes into blocks that are there already: a file that grows by every write makes the file system write more of
 *  its own than of ours. */
class SegmentWriter {
  readonly segment: number;
  readonly #fd: number;
  readonly #zeros: Buffer;
  /** Up to where the file has blocks; beyond it, up to where it will when `#growing` is done. */
  #blocks = 0;
  #growing: Promise<void> | undefined;

  constructor(segment: number, path: string, aheadBytes: number) {
    this.segment = segment;
    this.#fd = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_DSYNC, 0o600);
    this.#zeros = Buffer.alloc(aheadBytes);
  }

  async write({ offset, bytes, buffers }: Group): Promise<void> {
    const end = offset + bytes;
    // Zeros that are still on their way must not come down on what is written now.
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
      // Not needed to go on: a disk that is full will say so to the next entry.
      () => {
        this.#growing = undefined;
      },
    );
  }
}

/** A single write may stop short. */
function writeAll(fd: number, buffers: readonly Uint8Array[], position: number): Promise<void> {
  return new Promise((done, failed) => {
    writev(fd, buffers, position, (error, written) => {
      if (error !== null) return failed(error);
      let skip = written;
      const left: Uint8Array[] = [];
      for (const buffer of buffers) {
        if (skip < buffer.length) left.push(buffer.subarray(skip));
        skip = Math.max(0, skip - buffer.length);
      }
      if (left.length === 0) done();
      else writeAll(fd, left, position + written).then(done, failed);
    });
  });
}

/** The entries of a segment up to where a crash tore it. */
function readSegment(path: string, segment: number): LogEntry[] {
  const block = readFileSync(path);
  const entries: LogEntry[] = [];
  let batch = 0;
  let offset = 0;
  for (;;) {
    const entry = readEntry(block, offset, { segment, offset });
    if (entry === undefined) break;
    entries.push({ place: { segment, offset, bytes: entry.bytes }, payload: entry.payload });
    batch = entry.batch;
    offset += entry.bytes;
  }
  // A torn write is the last one. Where a later one stands behind it, the disk has lost what was on it.
  const hasHeader = offset + HEADER_BYTES <= block.length && block.readUInt32LE(offset) === MAGIC;
  const torn = hasHeader ? block.readUInt32LE(offset + 16) : batch + 1;
  for (let at = offset + 1; at + HEADER_BYTES <= block.length; at++) {
    at = block.indexOf("RBL1", at, "latin1");
    if (at < 0) break;
    const later = readEntry(block, at, { segment, offset: at });
    if (later !== undefined && later.batch > torn) throw damaged(path, offset);
  }
  return entries;
}

/** Undefined if those bytes are not a whole entry that was written for this place. */
function readEntry(
  block: Buffer,
  at: number,
  { segment, offset }: { segment: number; offset: number },
): { payload: Buffer; bytes: number; batch: number } | undefined {
  if (at + HEADER_BYTES > block.length || block.readUInt32LE(at) !== MAGIC) return undefined;
  const bytes = HEADER_BYTES + block.readUInt32LE(at + 4);
  if (block.readUInt32LE(at + 8) !== segment || block.readUInt32LE(at + 12) !== offset) return undefined;
  if (at + bytes > block.length) return undefined;
  const payload = block.subarray(at + HEADER_BYTES, at + bytes);
  if (checksum(payload, crc32(block.subarray(at, at + 20))) !== block.readUInt32LE(at + 20)) return undefined;
  return { payload, bytes, batch: block.readUInt32LE(at + 16) };
}

/** zlib takes an empty view that has no address for the wish to begin anew. */
function checksum(part: Uint8Array, sum: number): number {
  return part.length === 0 ? sum : crc32(part, sum);
}

function damaged(path: string, offset: number): RollbookError {
  return new RollbookError(
    "damaged-log",
    { path, offset },
    `${path}: the entry at ${offset} is damaged, and later ones are not: the disk has changed what was on it. ` +
      "Restore the file, or move it away to go on without the rollouts in it.",
  );
}
