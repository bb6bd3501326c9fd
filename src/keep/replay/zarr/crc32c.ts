/** CRC-32C (Castagnoli), the checksum of Zarr's `crc32c` codec and of shard indexes.
 *  In: bytes. Out: an unsigned 32-bit number. Long inputs run at memory speed in the fold kernel; short ones
 *  and the remainder that folding leaves go through tables, eight bytes at a time. */
import { type FoldKernel, instantiateFoldKernel, REACH, STRIDE } from "./crc32c-kernel.ts";

export function crc32c(bytes: Uint8Array): number {
  return bytes.length < FOLD_FROM ? ~advance(-1, bytes) >>> 0 : ~advance(0, shorten(bytes)) >>> 0;
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

/** A message of REACH … REACH + STRIDE bytes with the CRC of `bytes`; the initial register is folded in. Valid
 *  until the next call. */
function shorten(bytes: Uint8Array): Uint8Array {
  if (kernel === undefined) {
    kernel = instantiateFoldKernel(MEMORY_PAGES);
    memory = new Uint8Array(kernel.memory.buffer);
  }
  const folded = Math.floor((bytes.length - REACH) / STRIDE) * STRIDE;
  memory.fill(0, 0, PIECE_AT);
  for (let at = 0; at < folded; at += PIECE_BYTES) {
    const size = Math.min(PIECE_BYTES, folded - at);
    memory.set(bytes.subarray(at, at + size), PIECE_AT);
    if (at === 0) for (let i = 0; i < 4; i++) memory[PIECE_AT + i]! ^= 0xff;
    kernel.fold(PIECE_AT, PIECE_AT, PIECE_AT + size);
    memory.copyWithin(PIECE_AT - REACH, PIECE_AT + size - REACH, PIECE_AT + size);
  }
  const left = bytes.length - folded;
  memory.set(bytes.subarray(folded), REMAINDER_AT);
  memory.fill(0, PIECE_AT, PIECE_AT + left);
  kernel.fold(REMAINDER_AT, PIECE_AT, REMAINDER_AT + Math.ceil(left / STRIDE) * STRIDE);
  return memory.subarray(REMAINDER_AT, REMAINDER_AT + left);
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

/** The register after `bytes`, slicing by eight. */
function advance(register: number, bytes: Uint8Array): number {
  const whole = bytes.length & ~7;
  let i = 0;
  for (; i < whole; i += 8) {
    const low = register ^ (bytes[i]! | (bytes[i + 1]! << 8) | (bytes[i + 2]! << 16) | (bytes[i + 3]! << 24));
    register =
      TABLES[1792 + (low & 0xff)]! ^
      TABLES[1536 + ((low >>> 8) & 0xff)]! ^
      TABLES[1280 + ((low >>> 16) & 0xff)]! ^
      TABLES[1024 + (low >>> 24)]! ^
      TABLES[768 + bytes[i + 4]!]! ^
      TABLES[512 + bytes[i + 5]!]! ^
      TABLES[256 + bytes[i + 6]!]! ^
      TABLES[bytes[i + 7]!]!;
  }
  for (; i < bytes.length; i++) register = TABLES[(register ^ bytes[i]!) & 0xff]! ^ (register >>> 8);
  return register;
}
