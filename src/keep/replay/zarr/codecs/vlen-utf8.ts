/** Zarr's `vlen-utf8`: strings of any length as one byte string.
 *  Layout, all little-endian: u32 count, then for each string u32 byte length and its UTF-8. */
import { RollbookError } from "../../../../base/index.ts";
import { damaged, readU32 } from "./codecs.ts";

export function encodeStrings(strings: readonly string[]): Uint8Array {
  let size = 4;
  for (const string of strings) size += 4 + Buffer.byteLength(string);
  const out = Buffer.allocUnsafe(size);
  out.writeUInt32LE(strings.length, 0);
  let at = 4;
  for (const string of strings) {
    if (!string.isWellFormed()) throw loneSurrogate(string);
    const length = out.write(string, at + 4);
    out.writeUInt32LE(length, at);
    at += 4 + length;
  }
  return out;
}

/** Decodes exactly `count` strings; missing or extra bytes and invalid UTF-8 are damage. */
export function decodeStrings(bytes: Uint8Array, count: number, where: string): string[] {
  const strings = new Array<string>(count);
  if (bytes.length < 4 || readU32(bytes, 0) !== count) throw damaged(where, `does not hold ${count} strings`);
  let at = 4;
  for (let i = 0; i < count; i++) {
    const start = at + 4;
    at = start <= bytes.length ? start + readU32(bytes, at) : Number.POSITIVE_INFINITY;
    if (at > bytes.length) throw damaged(where, `ends inside string ${i}`);
    strings[i] = start === at ? "" : decodeUtf8(bytes.subarray(start, at), { where, index: i });
  }
  if (at !== bytes.length) throw damaged(where, `has ${bytes.length - at} bytes left over after its strings`);
  return strings;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeUtf8(bytes: Uint8Array, { where, index }: { where: string; index: number }): string {
  try {
    return decoder.decode(bytes);
  } catch (cause) {
    throw damaged(where, `holds invalid UTF-8 in string ${index}`, cause);
  }
}

function loneSurrogate(string: string): RollbookError {
  return new RollbookError(
    "lone-surrogate",
    { string },
    `${JSON.stringify(string.slice(0, 80))} holds a lone surrogate and has no UTF-8 form. Fix the text before storing it.`,
  );
}
