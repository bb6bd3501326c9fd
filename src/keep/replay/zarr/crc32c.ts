/** CRC-32C (Castagnoli), the checksum of Zarr's `crc32c` codec and of shard indexes.
 *  In: bytes. Out: an unsigned 32-bit number. Long inputs are first folded by the kernel, at memory speed; short ones,
 *  and the remainder that folding leaves, go through tables, eight bytes at a time. */
import { type FoldKernel, instantiateFoldKernel, REACH, STRIDE } from "./crc32c-kernel.ts";

/** `fetch(end)`, if given, is called before the bytes up to `end` are looked at: a caller may read them in just then,
 *  so that they are checked while they are hot in the cache. It must not call `crc32c` itself. */
export function crc32c(bytes: Uint8Array, fetch: (end: number) => void = ready): number {
  const own = folders.get(bytes.buffer);
  if (own !== undefined) return own.checksum(bytes, fetch);
  common ??= new Folder(0);
  return common.checksum(bytes, fetch);
}

/** Memory from which `crc32c` reads in place; all other memory it has to copy to the kernel first, which takes half as
 *  long as the checksum itself. It costs address space, so it is meant for buffers that are used many times. */
export function checksumMemory(bytes: number): Uint8Array {
  const folder = new Folder(bytes);
  folders.set(folder.data.buffer, folder);
  return folder.data;
}

/** Below this the remainder of folding (REACH bytes) is not worth it. */
const FOLD_FROM = Math.ceil(1.5 * REACH);
const POLYNOMIAL = 0x82f63b78;

// The memory of a kernel: [history | piece | remainder | data]. A piece is small enough to stay in the first cache.
const PIECE_AT = Math.ceil(REACH / STRIDE) * STRIDE;
const PIECE_BYTES = 128 * STRIDE;
const REMAINDER_AT = PIECE_AT + PIECE_BYTES;
const DATA_AT = REMAINDER_AT + Math.ceil(FOLD_FROM / STRIDE) * STRIDE;
const PAGE_BYTES = 65_536;

let common: Folder | undefined;
const folders = new WeakMap<ArrayBufferLike, Folder>();

function ready(): void {}

class Folder {
  readonly data: Uint8Array;
  readonly #fold: FoldKernel["fold"];
  readonly #memory: Uint8Array;
  readonly #words: Int32Array;

  constructor(dataBytes: number) {
    const { memory, fold } = instantiateFoldKernel(Math.ceil((DATA_AT + dataBytes + STRIDE) / PAGE_BYTES));
    this.#fold = fold;
    this.#memory = new Uint8Array(memory.buffer);
    this.#words = new Int32Array(memory.buffer);
    this.data = this.#memory.subarray(DATA_AT, DATA_AT + dataBytes);
  }

  checksum(bytes: Uint8Array, fetch: (end: number) => void): number {
    if (bytes.length >= FOLD_FROM) return ~advance(0, this.#words, this.#shorten(bytes, fetch)) >>> 0;
    fetch(bytes.length);
    this.#memory.set(bytes, REMAINDER_AT);
    return ~advance(-1, this.#words, bytes.length) >>> 0;
  }

  /** Leaves in the remainder a message with the CRC of `bytes`, the initial register folded in. Answers its length:
   *  REACH … REACH + STRIDE bytes. */
  #shorten(bytes: Uint8Array, fetch: (end: number) => void): number {
    const memory = this.#memory;
    const inPlace = bytes.buffer === memory.buffer;
    const folded = Math.floor((bytes.length - REACH) / STRIDE) * STRIDE;
    memory.fill(0, 0, PIECE_AT);
    for (let at = 0; at < folded; at += PIECE_BYTES) {
      const size = Math.min(PIECE_BYTES, folded - at);
      fetch(at + size);
      if (!inPlace) memory.set(bytes.subarray(at, at + size), PIECE_AT);
      this.#foldPiece(inPlace ? bytes.byteOffset + at : PIECE_AT, size, at === 0);
      memory.copyWithin(PIECE_AT - REACH, PIECE_AT + size - REACH, PIECE_AT + size);
    }
    const left = bytes.length - folded;
    fetch(bytes.length);
    memory.set(bytes.subarray(folded), REMAINDER_AT);
    memory.fill(0, PIECE_AT, PIECE_AT + left);
    const end = REMAINDER_AT + Math.ceil(left / STRIDE) * STRIDE;
    this.#fold(REMAINDER_AT, end, REMAINDER_AT, PIECE_AT);
    return left;
  }

  /** The first stride depends on nothing before it: there the initial register, all ones, is xor-ed in. */
  #foldPiece(source: number, size: number, first: boolean): void {
    const head = first ? STRIDE : 0;
    if (first) {
      this.#fold(source, source + head, PIECE_AT, PIECE_AT);
      this.#words[PIECE_AT >> 2]! ^= -1;
      if (size === head) return;
    }
    this.#fold(source + head, source + size, PIECE_AT + head, PIECE_AT + head);
  }
}

/** TABLES[256·k + b]: the register after byte b and then k zero bytes. */
const TABLES = new Int32Array(8 * 256);
for (let byte = 0; byte < 256; byte++) {
  let register = byte;
  for (let bit = 0; bit < 8; bit++) register = register & 1 ? (register >>> 1) ^ POLYNOMIAL : register >>> 1;
  TABLES[byte] = register;
}
for (let i = 256; i < TABLES.length; i++) {
  const before = TABLES[i - 256]!;
  TABLES[i] = (before >>> 8) ^ TABLES[before & 0xff]!;
}

/** The register after the first `length` bytes of the remainder, slicing by eight. */
function advance(register: number, words: Int32Array, length: number): number {
  const first = REMAINDER_AT >> 2;
  const end = first + 2 * (length >> 3);
  for (let i = first; i < end; i += 2) {
    const low = register ^ words[i]!;
    const high = words[i + 1]!;
    register =
      TABLES[1792 + (low & 0xff)]! ^
      TABLES[1536 + ((low >>> 8) & 0xff)]! ^
      TABLES[1280 + ((low >>> 16) & 0xff)]! ^
      TABLES[1024 + (low >>> 24)]! ^
      TABLES[768 + (high & 0xff)]! ^
      TABLES[512 + ((high >>> 8) & 0xff)]! ^
      TABLES[256 + ((high >>> 16) & 0xff)]! ^
      TABLES[high >>> 24]!;
  }
  for (let i = 0; i < (length & 7); i++) {
    const byte = words[end + (i >> 2)]! >>> (8 * (i & 3));
    register = TABLES[(register ^ byte) & 0xff]! ^ (register >>> 8);
  }
  return register;
}
