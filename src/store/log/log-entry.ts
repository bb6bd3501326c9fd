/** The byte format of append log entries. In: parts of a payload, or a segment file. Out: headers, or entries, checked.
 *  An entry, little-endian: magic "RBL1", payload length, segment, offset in it, number of its write in the segment,
 *  CRC-32 of these 20 bytes and the payload; then the payload. Bytes that do not name their own segment and offset are
 *  not an entry. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { RollbookError } from "../../base/index.ts";

export interface LogPlace {
  readonly segment: number;
  readonly offset: number;
  /** Length with the header. */
  readonly bytes: number;
}

export interface LogEntry {
  readonly place: LogPlace;
  readonly payload: Buffer;
}

/** Place of an entry, and the number of its write. */
interface EntryAt {
  readonly place: LogPlace;
  readonly write: number;
}

export const HEADER_BYTES = 24;
/** Length of the part of the header that the checksum covers. */
const SUMMED_BYTES = 20;
const MAGIC = Buffer.from("RBL1", "latin1").readUInt32LE(0);

/** Path of a segment of the log in `directory`. */
export function segmentPath(directory: string, segment: number): string {
  return join(directory, `${String(segment).padStart(10, "0")}.log`);
}

/** Writes the header of an entry whose payload directly follows in the block. */
export function writeHeader(block: Buffer, at: number, { place, write }: EntryAt): void {
  writeFields(block, at, { place, write });
  const end = at + place.bytes;
  const sum = checksum(block.subarray(at + HEADER_BYTES, end), crc32(block.subarray(at, at + SUMMED_BYTES)));
  block.writeUInt32LE(sum, at + SUMMED_BYTES);
}

/** Header of an entry whose payload is in other buffers. */
export function headerOf(parts: readonly Uint8Array[], at: EntryAt): Buffer {
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  writeFields(header, 0, at);
  let sum = crc32(header.subarray(0, SUMMED_BYTES));
  for (const part of parts) sum = checksum(part, sum);
  header.writeUInt32LE(sum, SUMMED_BYTES);
  return header;
}

function writeFields(block: Buffer, at: number, { place, write }: EntryAt): void {
  block.writeUInt32LE(MAGIC, at);
  block.writeUInt32LE(place.bytes - HEADER_BYTES, at + 4);
  block.writeUInt32LE(place.segment, at + 8);
  block.writeUInt32LE(place.offset, at + 12);
  block.writeUInt32LE(write, at + 16);
}

/** Entries of a segment up to the point where a crash tore it. */
export function readSegment(path: string, segment: number): LogEntry[] {
  const block = readFileSync(path);
  const entries: LogEntry[] = [];
  let write = 0;
  let offset = 0;
  for (;;) {
    const entry = readEntry(block, offset, { segment, offset });
    if (entry === undefined) break;
    entries.push({ place: { segment, offset, bytes: entry.bytes }, payload: entry.payload });
    write = entry.write;
    offset += entry.bytes;
  }
  // Only the last write can be torn. It is the write of the last intact entry if the next header names it, else the
  // write after it. An intact entry of a later write means that the disk lost data.
  const isSameWrite = write > 0 && numberAt(block, offset) === write;
  const torn = isSameWrite ? write : write + 1;
  for (let at = offset + 1; at + HEADER_BYTES <= block.length; at++) {
    at = block.indexOf("RBL1", at, "latin1");
    if (at < 0) break;
    const later = readEntry(block, at, { segment, offset: at });
    if (later !== undefined && later.write > torn)
      throw damaged(path, offset, "is damaged, and later ones are not: the disk has changed what was on it");
  }
  return entries;
}

/** Number of the write in a possibly damaged header. */
function numberAt(block: Buffer, at: number): number | undefined {
  const hasHeader = at + HEADER_BYTES <= block.length && block.readUInt32LE(at) === MAGIC;
  return hasHeader ? block.readUInt32LE(at + 16) : undefined;
}

/** Undefined if the bytes are not an intact entry written for this place. */
export function readEntry(
  block: Buffer,
  at: number,
  { segment, offset }: { segment: number; offset: number },
): { payload: Buffer; bytes: number; write: number } | undefined {
  if (at + HEADER_BYTES > block.length || block.readUInt32LE(at) !== MAGIC) return undefined;
  const bytes = HEADER_BYTES + block.readUInt32LE(at + 4);
  if (block.readUInt32LE(at + 8) !== segment || block.readUInt32LE(at + 12) !== offset) return undefined;
  if (at + bytes > block.length) return undefined;
  const payload = block.subarray(at + HEADER_BYTES, at + bytes);
  if (
    checksum(payload, crc32(block.subarray(at, at + SUMMED_BYTES))) !== block.readUInt32LE(at + SUMMED_BYTES)
  )
    return undefined;
  return { payload, bytes, write: block.readUInt32LE(at + 16) };
}

/** zlib resets the checksum for an empty view without an address. */
function checksum(part: Uint8Array, sum: number): number {
  return part.length === 0 ? sum : crc32(part, sum);
}

export function damaged(path: string, offset: number, how: string): RollbookError {
  return new RollbookError(
    "damaged-log",
    { path, offset },
    `${path}: the entry at ${offset} ${how}. Restore the file, or move it away to go on without the rollouts in it.`,
  );
}
