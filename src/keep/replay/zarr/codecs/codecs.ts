/** The bytes → bytes codecs of a chunk, in order: gzip, zstd, crc32c.
 *  In: the raw bytes of a chunk. Out: the stored bytes, and back. Every crc32c is verified; a decoder never produces
 *  more bytes than the chunk holds. The array → bytes step (little-endian items, vlen-utf8) is separate. */
import * as zlib from "node:zlib";
import { RollbookError, reasonOf } from "../../../../base/index.ts";
import type { MaybePromise } from "../store.ts";
import { crc32c } from "./crc32c.ts";
import type { Zstd } from "./zstd.ts";

export type BytesCodec =
  | { readonly name: "gzip"; readonly level: number }
  | { readonly name: "zstd"; readonly level: number; readonly checksum: boolean }
  | { readonly name: "crc32c" };

export const CRC_BYTES = 4;

/** Stored form of `raw`; without codecs it is `raw` itself, not a copy. */
export function encodeBytes(codecs: readonly BytesCodec[], raw: Uint8Array): MaybePromise<Uint8Array> {
  let bytes: MaybePromise<Uint8Array> = raw;
  for (const codec of codecs) {
    bytes =
      bytes instanceof Promise ? bytes.then((input) => encodeOne(codec, input)) : encodeOne(codec, bytes);
  }
  return bytes;
}

interface DecodeContext {
  /** Name of the chunk, for messages. */
  where: string;
  /** Exact size of the decoded chunk, or its maximum if its items vary in length. */
  size: { exactly: number } | { atMost: number };
}

export async function decodeBytes(
  codecs: readonly BytesCodec[],
  stored: Uint8Array,
  { where, size }: DecodeContext,
): Promise<Uint8Array> {
  const limit = "exactly" in size ? size.exactly : size.atMost;
  // Limit for the output of an outer codec: the inner codecs add at most a checksum or a compressor's worst case.
  const ceiling = limit + (limit >>> 6) + 1024 * codecs.length;
  let bytes = stored;
  for (const codec of codecs.toReversed()) bytes = await decodeOne(codec, bytes, { where, ceiling });
  if ("exactly" in size ? bytes.length !== size.exactly : bytes.length > size.atMost) {
    throw damaged(where, `decodes to ${bytes.length} bytes, the metadata says ${limit}`);
  }
  return bytes;
}

/** Throws unless `trailer` is the checksum of `bytes`. For `fetch` see crc32c; it may also fill the trailer. */
export function verifyCrc(
  bytes: Uint8Array,
  trailer: Uint8Array,
  { where, fetch }: { where: string; fetch?: (end: number) => void },
): void {
  const actual = crc32c(bytes, fetch);
  const expected = readU32(trailer, 0);
  if (actual !== expected)
    throw damaged(where, `has crc32c ${hex(actual)}, its trailer says ${hex(expected)}`);
}

function appendCrc(bytes: Uint8Array): Uint8Array {
  const out = Buffer.allocUnsafe(bytes.length + CRC_BYTES);
  out.set(bytes);
  out.writeUInt32LE(crc32c(bytes), bytes.length);
  return out;
}

/** Error for bytes that differ from what was written. */
export function damaged(where: string, what: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "zarr-damaged",
    { where },
    `${where} ${what}. Restore it from a copy or write it again.`,
    { cause },
  );
}

export function readU32(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0;
}

function encodeOne(codec: BytesCodec, bytes: Uint8Array): MaybePromise<Uint8Array> {
  switch (codec.name) {
    case "gzip":
      return zlib.gzipSync(bytes, { level: codec.level });
    case "zstd":
      return zstd().then((implementation) => implementation.encode(bytes, codec));
    case "crc32c":
      return appendCrc(bytes);
    default:
      return codec satisfies never;
  }
}

async function decodeOne(
  codec: BytesCodec,
  bytes: Uint8Array,
  { where, ceiling }: { where: string; ceiling: number },
): Promise<Uint8Array> {
  if (codec.name === "crc32c") {
    if (bytes.length < CRC_BYTES) throw damaged(where, "is too short for its checksum");
    const content = bytes.subarray(0, bytes.length - CRC_BYTES);
    verifyCrc(content, bytes.subarray(content.length), { where });
    return content;
  }
  try {
    if (codec.name === "gzip") return zlib.gunzipSync(bytes, { maxOutputLength: ceiling });
    return await (await zstd()).decode(bytes, ceiling);
  } catch (cause) {
    throw damaged(where, `is not valid ${codec.name} (${reasonOf(cause)})`, cause);
  }
}

function hex(value: number): string {
  return `0x${value.toString(16).padStart(8, "0")}`;
}

let loading: Promise<Zstd> | undefined;

function zstd(): Promise<Zstd> {
  loading ??= import("./zstd.ts").then(({ loadZstd }) => loadZstd());
  return loading;
}
