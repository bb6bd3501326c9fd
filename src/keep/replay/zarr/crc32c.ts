/** CRC-32C (Castagnoli), the checksum of Zarr's `crc32c` codec and of shard indexes.
 *  In: bytes. Out: an unsigned 32-bit number. Long inputs are first folded by the kernel, at memory speed; short ones,
 *  and the remainder that folding leaves, go through tables, eight bytes at a time. */
import { type FoldKernel, instantiateFoldKernel, REACH, STRIDE } from "./crc32c-kernel.ts";

export function crc32c(bytes: Uint8Array): number {
  kernel ??= instantiate();
  if (bytes.length >= FOLD_FROM) return ~advance(0, shorten(kernel, bytes)) >>> 0;
  memory.set(bytes, REMAINDER_AT);
  return ~advance(-1, bytes.length) >>> 0;
}

/** Below this the remainder of folding (REACH bytes) is not worth it. */
const FOLD_FROM = Math.ceil(1.5 * REACH);
const POLYNOMIAL = 0x82f63b78;

// The memory of the kernel: [history | piece | remainder]. A piece is small enough to stay in the first cache.
const PIECE_AT = Math.ceil(REACH / STRIDE) * STRIDE;
const PIECE_BYTES = 128 * STRIDE;
const REMAINDER_AT = PIECE_AT + PIECE_BYTES;
const MEMORY_PAGES = 1;

let kernel: FoldKernel | undefined;
let memory = new Uint8Array(0);
let words = new Int32Array(0);

function instantiate(): FoldKernel {
  const fresh = instantiateFoldKernel(MEMORY_PAGES);
  memory = new Uint8Array(fresh.memory.buffer);
  words = new Int32Array(fresh.memory.buffer);
  return fresh;
}

/** Leaves in the remainder a message with the CRC of `bytes`, the initial register folded in. Answers its length:
 *  REACH … REACH + STRIDE bytes. */
function shorten({ fold }: FoldKernel, bytes: Uint8Array): number {
  const folded = Math.floor((bytes.length - REACH) / STRIDE) * STRIDE;
  memory.fill(0, 0, PIECE_AT);
  for (let at = 0; at < folded; at += PIECE_BYTES) {
    const size = Math.min(PIECE_BYTES, folded - at);
    memory.set(bytes.subarray(at, at + size), PIECE_AT);
    if (at === 0) words[PIECE_AT >> 2]! ^= -1;
    fold(PIECE_AT, PIECE_AT, PIECE_AT + size);
    memory.copyWithin(PIECE_AT - REACH, PIECE_AT + size - REACH, PIECE_AT + size);
  }
  const left = bytes.length - folded;
  memory.set(bytes.subarray(folded), REMAINDER_AT);
  memory.fill(0, PIECE_AT, PIECE_AT + left);
  fold(REMAINDER_AT, PIECE_AT, REMAINDER_AT + Math.ceil(left / STRIDE) * STRIDE);
  return left;
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
function advance(register: number, length: number): number {
  const end = (REMAINDER_AT + length) >> 3;
  for (let i = REMAINDER_AT >> 3; i < end; i++) {
    const low = register ^ words[2 * i]!;
    const high = words[2 * i + 1]!;
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
  for (let i = 8 * end; i < REMAINDER_AT + length; i++)
    register = TABLES[(register ^ memory[i]!) & 0xff]! ^ (register >>> 8);
  return register;
}
