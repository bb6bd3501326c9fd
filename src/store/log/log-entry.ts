/** The entries of an append log as bytes. In: parts of a payload, or a segment file. Out: headers, or entries, checked.
 *  An entry, little-endian: magic "RBL1", payload length, segment, offset in it, number of its write in the segment,
 *  CRC-32 of these 20 bytes and the payload; then the payload. What does not name the place it stands at is no entry. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { RollbookError } from "../../base/index.ts";

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

/** Where an entry stands, and the number of its write. */
interface EntryAt {
  readonly place: LogPlace;
  readonly write: number;
}

export const HEADER_BYTES = 24;
/** Of the header, what the checksum behind it covers. */
const SUMMED_BYTES = 20;
const MAGIC = Buffer.from("RBL1", "latin1").readUInt32LE(0);

/** Where a segment of the log in `directory` stands. */
export function segmentPath(directory: string, segment: number): string {
  return join(directory, `${String(segment).padStart(10, "0")}.log`);
}

/** Writes the header of the entry whose payload stands right behind it in the block. */
export function writeHeader(block: Buffer, at: number, { place, write }: EntryAt): void {
  writeFields(block, at, { place, write });
  const end = at + place.bytes;
  const sum = checksum(block.subarray(at + HEADER_BYTES, end), crc32(block.subarray(at, at + SUMMED_BYTES)));
  block.writeUInt32LE(sum, at + SUMMED_BYTES);
}

/** The header of an entry whose payload is elsewhere. */
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

/** The entries of a segment up to where a crash tore it. */
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
  // A torn write is the last one: that of the last whole entry, if the next header still says so, or the one after it.
  // Where a later one stands behind it, the disk has lost what was on it.
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

/** The number of the write in whatever is left of a header. */
function numberAt(block: Buffer, at: number): number | undefined {
  const hasHeader = at + HEADER_BYTES <= block.length && block.readUInt32LE(at) === MAGIC;
  return hasHeader ? block.readUInt32LE(at + 16) : undefined;
}

/** Undefined if those bytes are not a whole entry that was written for this place. */
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

/** zlib takes an empty view that has no address for the wish to begin anew. */
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
