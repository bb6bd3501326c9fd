/** Zstandard: from node:zlib if it has it (Node ≥ 22.15), else WebAssembly from numcodecs.
 *  In: bytes. Out: one frame, and back. Loaded only when an array uses zstd. */
import * as zlib from "node:zlib";
import { RollbookError } from "../../../../base/index.ts";
import type { MaybePromise } from "../store.ts";

export interface Zstd {
  encode(bytes: Uint8Array, options: { level: number; checksum: boolean }): MaybePromise<Uint8Array>;
  /** Throws on frames that are damaged or claim more than `ceiling` bytes. */
  decode(bytes: Uint8Array, ceiling: number): MaybePromise<Uint8Array>;
}

export async function loadZstd(): Promise<Zstd> {
  const native = zlib as unknown as Partial<NativeZstd>;
  return native.zstdCompressSync === undefined ? wasmZstd() : nativeZstd(native as NativeZstd);
}

/** The part of node:zlib that Node 20 and its types do not have. */
interface NativeZstd {
  zstdCompressSync(
    bytes: Uint8Array,
    options: { params: Record<number, number>; chunkSize: number },
  ): Uint8Array;
  zstdDecompressSync(bytes: Uint8Array, options: { maxOutputLength: number; chunkSize?: number }): Uint8Array;
}

// Parameter numbers of zstd.h (ZSTD_cParameter), the same in every version.
const COMPRESSION_LEVEL = 100;
const CHECKSUM_FLAG = 201;

/** Smallest output buffer that node:zlib accepts, and the margin beyond the content: a completely filled buffer makes
 *  node:zlib allocate a second one. */
const LEAST_CHUNK = 64;

/** Uses one output buffer for all of the content: by default the output is joined from pieces of 16 KiB. */
function nativeZstd(native: NativeZstd): Zstd {
  return {
    encode: (bytes, { level, checksum }) =>
      native.zstdCompressSync(bytes, {
        params: { [COMPRESSION_LEVEL]: level, [CHECKSUM_FLAG]: checksum ? 1 : 0 },
        chunkSize: Math.max(LEAST_CHUNK, bytes.length),
      }),
    decode(bytes, ceiling) {
      const size = contentSize(bytes);
      const known = size !== undefined && size <= ceiling;
      return native.zstdDecompressSync(bytes, {
        maxOutputLength: ceiling,
        ...(known ? { chunkSize: size + LEAST_CHUNK } : {}),
      });
    },
  };
}

export async function wasmZstd(): Promise<Zstd> {
  const { default: Codec } = await import("numcodecs/zstd");
  const decoder = new Codec();
  return {
    encode(bytes, { level, checksum }) {
      if (checksum) {
        throw new RollbookError(
          "zarr-unsupported",
          { level, checksum },
          "this runtime's zstd cannot add a checksum to its frames. Use crc32c after zstd, or Node 22.15 or newer.",
        );
      }
      return new Codec(level).encode(bytes);
    },
    decode(bytes, ceiling) {
      const size = contentSize(bytes);
      if (size !== undefined && size > ceiling) {
        throw new RollbookError("zarr-damaged", { size, ceiling }, `frame claims ${size} bytes`);
      }
      return decoder.decode(bytes);
    },
  };
}

/** Content size that a frame claims (RFC 8878, section 3.1.1.1), or undefined. */
function contentSize(frame: Uint8Array): number | undefined {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  if (frame.length < 18 || view.getUint32(0, true) !== 0xfd2fb528) return undefined;
  const descriptor = frame[4]!;
  const single = (descriptor & 0x20) !== 0;
  const at = 5 + (single ? 0 : 1) + [0, 1, 2, 4][descriptor & 3]!;
  switch (descriptor >>> 6) {
    case 0:
      return single ? frame[at] : undefined;
    case 1:
      return view.getUint16(at, true) + 256;
    case 2:
      return view.getUint32(at, true);
    default:
      return Number(view.getBigUint64(at, true));
  }
}
