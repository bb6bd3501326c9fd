/** CRC-32C (Castagnoli), the checksum of Zarr's `crc32c` codec and of shard indexes.
 *  In: bytes. Out: an unsigned 32-bit number. The kernel folds long inputs, at memory speed, to a few hundred bytes
 *  with the same CRC. Tables process those, eight bytes at a time. */
import { type FoldCrc, type Folding, instantiateFoldKernel, LONG, SHORT } from "./crc32c-kernel.ts";

/** `fetch(end)`, if given, is called before the bytes up to `end` are used. A caller may read them at that moment, so
 *  that they are checked while they are in the cache. `fetch` must not call `crc32c` itself. */
export function crc32c(bytes: Uint8Array, fetch: (end: number) => void = ready): number {
  const own = workspaces.get(bytes.buffer);
  if (own !== undefined) return own.checksum(bytes, fetch);
  common ??= new Workspace(0);
  return common.checksum(bytes, fetch);
}

/** Memory from which `crc32c` reads in place. Other memory must first be copied to the kernel, which takes half as long
 *  as the checksum itself. The memory begins at a page, where reads from files are fastest. It costs address space, so
 *  it is meant for buffers that are used many times. */
export function checksumMemory(bytes: number): Uint8Array {
  const workspace = new Workspace(bytes);
  workspaces.set(workspace.data.buffer, workspace);
  return workspace.data;
}

const POLYNOMIAL = 0x82f63b78;
/** Below these lengths the remainder costs more than folding saves. */
const LONG_FROM = 2 * LONG.reach;
const SHORT_FROM = 4 * SHORT.reach;

// The memory of a kernel: [history | piece | middle | rest | data]. The middle is the output of the long folding, with
// room for the history of the short folding. The rest is the output of the short folding.
const PIECE_AT = roundUp(LONG.reach, LONG.stride);
const PIECE_BYTES = 512 * LONG.stride;
const MIDDLE_AT = PIECE_AT + PIECE_BYTES + roundUp(SHORT.reach, LONG.stride);
const REST_AT = MIDDLE_AT + roundUp(LONG_FROM, LONG.stride);
const DATA_AT = roundUp(REST_AT + SHORT_FROM, 4096);
const PAGE_BYTES = 65_536;

let common: Workspace | undefined;
const workspaces = new WeakMap<ArrayBufferLike, Workspace>();

function ready(): void {}

class Workspace {
  readonly data: Uint8Array;
  readonly #foldLong: FoldCrc;
  readonly #foldShort: FoldCrc;
  readonly #memory: Uint8Array;
  readonly #words: Int32Array;

  constructor(dataBytes: number) {
    const kernel = instantiateFoldKernel(Math.ceil((DATA_AT + dataBytes) / PAGE_BYTES));
    this.#foldLong = kernel.foldLong;
    this.#foldShort = kernel.foldShort;
    this.#memory = new Uint8Array(kernel.memory.buffer);
    this.#words = new Int32Array(kernel.memory.buffer);
    this.data = this.#memory.subarray(DATA_AT, DATA_AT + dataBytes);
  }

  checksum(bytes: Uint8Array, fetch: (end: number) => void): number {
    const words = this.#words;
    let length = bytes.length;
    if (length >= LONG_FROM) {
      length = this.#shortenLong(bytes, fetch);
    } else {
      fetch(length);
      this.#memory.set(bytes, length < SHORT_FROM ? REST_AT : MIDDLE_AT);
      if (length < SHORT_FROM) return ~advance(-1, words, length) >>> 0;
      // The initial register of all ones is equivalent to inverting the first four bytes of the message.
      words[MIDDLE_AT >> 2]! ^= -1;
    }
    return ~advance(0, words, this.#shortenMiddle(length)) >>> 0;
  }

  /** Writes to the middle a message with the CRC of `bytes`, including the initial register. Returns its length. */
  #shortenLong(bytes: Uint8Array, fetch: (end: number) => void): number {
    const memory = this.#memory;
    const inPlace = bytes.buffer === memory.buffer;
    const folded = roundDown(bytes.length - LONG.reach, LONG.stride);
    memory.fill(0, 0, PIECE_AT);
    for (let at = 0; at < folded; at += PIECE_BYTES) {
      const size = Math.min(PIECE_BYTES, folded - at);
      fetch(at + size);
      if (!inPlace) memory.set(bytes.subarray(at, at + size), PIECE_AT);
      this.#foldPiece(inPlace ? bytes.byteOffset + at : PIECE_AT, size, at === 0);
      memory.copyWithin(PIECE_AT - LONG.reach, PIECE_AT + size - LONG.reach, PIECE_AT + size);
    }
    fetch(bytes.length);
    memory.set(bytes.subarray(folded), MIDDLE_AT);
    return this.#finish(LONG, {
      fold: this.#foldLong,
      history: PIECE_AT,
      at: MIDDLE_AT,
      length: bytes.length - folded,
    });
  }

  /** The first stride has no history, so the initial register is xor-ed in there. */
  #foldPiece(source: number, size: number, first: boolean): void {
    const head = first ? LONG.stride : 0;
    if (first) {
      this.#foldLong(source, source + head, PIECE_AT, PIECE_AT);
      this.#words[PIECE_AT >> 2]! ^= -1;
      if (size === head) return;
    }
    this.#foldLong(source + head, source + size, PIECE_AT + head, PIECE_AT + head);
  }

  /** Writes to the rest a message with the CRC of the middle. Returns its length. */
  #shortenMiddle(length: number): number {
    const folded = roundDown(length - SHORT.reach, SHORT.stride);
    this.#memory.fill(0, MIDDLE_AT - SHORT.reach, MIDDLE_AT);
    this.#foldShort(MIDDLE_AT, MIDDLE_AT + folded, MIDDLE_AT, MIDDLE_AT);
    this.#memory.copyWithin(REST_AT, MIDDLE_AT + folded, MIDDLE_AT + length);
    const history = MIDDLE_AT + folded;
    return this.#finish(SHORT, { fold: this.#foldShort, history, at: REST_AT, length: length - folded });
  }

  /** The last bytes take from the bytes before them, but not from each other: their own history is zero. */
  #finish(
    { stride }: Folding,
    { fold, history, at, length }: { fold: FoldCrc; history: number; at: number; length: number },
  ): number {
    this.#memory.fill(0, history, history + length);
    fold(at, at + roundUp(length, stride), at, history);
    return length;
  }
}

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}

function roundDown(value: number, unit: number): number {
  return Math.floor(value / unit) * unit;
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

/** Register after the first `length` bytes of the rest, slicing by eight. */
function advance(register: number, words: Int32Array, length: number): number {
  const first = REST_AT >> 2;
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
