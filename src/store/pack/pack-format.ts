/** The bytes of a pack: entries, one after the other, each 8-byte aligned (docs/reference/store.md is the specification).
 *
 *    0  4  magic "RBE1".
 *    4  2  format version, 1.
 *    6  2  K, length of the kind.
 *    8  8  P, length of the payload.
 *   16  8  offset of this entry in its file, so that bytes inside a payload cannot pass for an entry.
 *   24 32  digest = SHA-256(kind, 0x00, payload).
 *   56  4  CRC-32 of bytes 0 … 55.
 *   60  …  zeros, kind, 0x00, payload, zeros: payload and entry end on multiples of 8.
 *
 *  Integers are little-endian. In: entries. Out: bytes, and back, with every byte checked. No I/O. */
import { hash } from "node:crypto";
import { type Digest, digestTagged } from "../../base/index.ts";
import { type FindingCode, isKind, MAX_KIND_BYTES } from "../blob/index.ts";

export const HEADER_BYTES = 60;
/** Blobs of at least this size are in separate files. */
export const LARGE_BYTES = 4 * 1024 * 1024;

export const PACK_HEADER_KIND = "rollbook.pack-header.v1";
export const PACK_FOOTER_KIND = "rollbook.pack-footer.v1";
/** Stands in a pack for a blob whose bytes are in `large/`. */
export const PACK_LARGE_KIND = "rollbook.pack-large.v1";

const MAGIC = Buffer.from("RBE1", "latin1");
const MAGIC_WORD = MAGIC.readUInt32LE(0);
const VERSION = 1;
/** CRC of every byte by the reversed polynomial 0xedb88320. */
const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** Offsets relative to the start of an entry. */
interface EntryLayout {
  readonly tagAt: number;
  readonly payloadAt: number;
  readonly payloadEnd: number;
  readonly end: number;
}

export function entryLayout(kindBytes: number, payloadBytes: number): EntryLayout {
  const payloadAt = roundUp8(HEADER_BYTES + kindBytes + 1);
  const payloadEnd = payloadAt + payloadBytes;
  return { tagAt: payloadAt - kindBytes - 1, payloadAt, payloadEnd, end: roundUp8(payloadEnd) };
}

export interface PackEntry {
  readonly kind: string;
  readonly payload: Uint8Array;
}

/** Writes an entry at `at` of the block, for offset `offset` of its file. `target` must have room for its layout. */
export function writeEntry(
  target: Buffer,
  entry: PackEntry,
  { at, offset }: { at: number; offset: number },
): Digest {
  const { kind, payload } = entry;
  const { tagAt, payloadAt, payloadEnd, end } = entryLayout(kind.length, payload.length);
  target.fill(0, at + HEADER_BYTES, at + tagAt);
  target.write(kind, at + tagAt, "latin1");
  target[at + payloadAt - 1] = 0;
  target.set(payload, at + payloadAt);
  target.fill(0, at + payloadEnd, at + end);
  const digest = digestTagged(target.subarray(at + tagAt, at + payloadEnd));
  target.writeUInt32LE(MAGIC_WORD, at);
  target.writeUInt16LE(VERSION, at + 4);
  target.writeUInt16LE(kind.length, at + 6);
  writeUint64(target, payload.length, at + 8);
  writeUint64(target, offset, at + 16);
  target.write(digest.slice(7), at + 24, "hex");
  target.writeUInt32LE(headerChecksum(target, at), at + 56);
  return digest;
}

/** Encodes an entry in a new buffer. */
export function encodeEntry(entry: PackEntry, offset: number): { bytes: Buffer; digest: Digest } {
  // Not from the pool: readers rely on 8-byte alignment.
  const bytes = Buffer.allocUnsafeSlow(entryLayout(entry.kind.length, entry.payload.length).end);
  return { bytes, digest: writeEntry(bytes, entry, { at: 0, offset }) };
}

/** Fields of a valid header. */
export interface EntryHeader {
  readonly kindBytes: number;
  readonly payloadBytes: number;
  readonly layout: EntryLayout;
}

/** The header at `at`, or undefined if those bytes are not the header of an entry at `offset`. */
export function readHeader(
  block: Buffer,
  { at, offset }: { at: number; offset: number },
): EntryHeader | undefined {
  if (block.readUInt32LE(at) !== MAGIC_WORD) return undefined;
  if (block.readUInt32LE(at + 56) !== headerChecksum(block, at)) return undefined;
  const kindBytes = block.readUInt16LE(at + 6);
  const payloadBytes = readUint64(block, at + 8);
  if (block.readUInt16LE(at + 4) !== VERSION || readUint64(block, at + 16) !== offset) return undefined;
  if (kindBytes === 0 || kindBytes > MAX_KIND_BYTES || payloadBytes >= LARGE_BYTES) return undefined;
  return { kindBytes, payloadBytes, layout: entryLayout(kindBytes, payloadBytes) };
}

export function headerDigest(block: Buffer, at: number): Digest {
  return `sha256:${block.toString("hex", at + 24, at + 56)}` as Digest;
}

export function headerKind(block: Buffer, at: number, { layout, kindBytes }: EntryHeader): string {
  const from = at + layout.tagAt;
  for (const known of knownKinds) if (isTextAt(block, from, kindBytes, known)) return known;
  const kind = block.toString("latin1", from, from + kindBytes);
  if (knownKinds.length < KNOWN_KINDS && isKind(kind)) knownKinds.push(kind);
  return kind;
}

/** Cache of kinds: a book has few kinds, and finding the string is faster than decoding it. */
const knownKinds: string[] = [];
const KNOWN_KINDS = 32;

/** Compares from the end, where kinds differ. */
function isTextAt(block: Buffer, from: number, length: number, text: string): boolean {
  if (text.length !== length) return false;
  for (let i = length - 1; i >= 0; i--) if (block[from + i] !== text.charCodeAt(i)) return false;
  return true;
}

interface EntryFault {
  readonly code: FindingCode;
  readonly message: string;
  readonly actual?: Digest;
}

interface CheckedEntry {
  /** Digest in the header. */
  readonly digest: Digest;
  /** Hexadecimal digits of the digest alone. */
  readonly hex: string;
  readonly kind: string;
  /** Undefined if the entry is intact. */
  readonly fault: EntryFault | undefined;
}

/** Checks every byte of an entry after its header. */
export function checkEntry(block: Buffer, at: number, header: EntryHeader): CheckedEntry {
  const { tagAt, payloadAt, payloadEnd, end } = header.layout;
  const kind = headerKind(block, at, header);
  // Comparing bare hex is faster than comparing digests: a concatenated string must be flattened first.
  const hex = block.toString("hex", at + 24, at + 56);
  const found = hash("sha256", block.subarray(at + tagAt, at + payloadEnd), "hex");
  const digest = `sha256:${hex}` as Digest;
  let fault: EntryFault | undefined;
  if (found !== hex) {
    const actual = `sha256:${found}` as Digest;
    fault = { code: "digest-mismatch", message: `content is ${actual}, its header says ${digest}`, actual };
  } else if (!isZero(block, at + HEADER_BYTES, at + tagAt) || !isZero(block, at + payloadEnd, at + end))
    fault = { code: "bad-padding", message: "the padding of this entry is not zero" };
  else if (!isKind(kind) || block[at + payloadAt - 1] !== 0)
    fault = { code: "bad-kind", message: "the kind of this entry is not a kind" };
  return { digest, hex, kind, fault };
}

/** Next possible start of a header: the first aligned magic in [from, to), or -1. `shift` aligns block to file. */
export function findMagic(block: Buffer, from: number, { to, shift }: { to: number; shift: number }): number {
  for (let at = block.indexOf(MAGIC, from); at >= 0 && at < to; at = block.indexOf(MAGIC, at + 1))
    if ((at + shift) % 8 === 0) return at;
  return -1;
}

/** CRC-32 of a header. For so few bytes a loop is faster than a call to zlib. */
function headerChecksum(block: Buffer, at: number): number {
  let crc = -1;
  for (let i = at; i < at + 56; i++) crc = CRC_TABLE[(crc ^ block[i]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

export function roundUp8(value: number): number {
  return value + ((8 - (value % 8)) % 8);
}

function isZero(block: Buffer, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (block[i] !== 0) return false;
  return true;
}

function writeUint64(target: Buffer, value: number, at: number): void {
  target.writeUInt32LE(value % 2 ** 32, at);
  target.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4);
}

function readUint64(block: Buffer, at: number): number {
  return block.readUInt32LE(at) + block.readUInt32LE(at + 4) * 2 ** 32;
}
