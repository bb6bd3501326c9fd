/** One-dimensional arrays in numpy's .npy format, version 1. Pure. In: type and length, then values. Out: bytes. */
import { RollbookError } from "../../base/index.ts";
import type { NumberType } from "./flat-columns.ts";

const NUMPY_TYPES: Readonly<Record<NumberType, string>> = {
  u8: "|u1",
  u32: "<u4",
  i32: "<i4",
  i64: "<i8",
  f32: "<f4",
  f64: "<f8",
};

export function numpyType(type: NumberType): string {
  return NUMPY_TYPES[type];
}

/** numpy's fixed-width text: UTF-32, padded with zeros. */
export function numpyText(width: number): string {
  return `<U${width}`;
}

export function npyHeader(type: string, length: number): Uint8Array {
  const text = `{'descr': '${type}', 'fortran_order': False, 'shape': (${length},), }`;
  // The values begin at a multiple of 64, as in files written by numpy.
  const bytes = Buffer.alloc(Math.ceil((10 + text.length + 1) / 64) * 64, " ");
  bytes.write("\x93NUMPY\x01\x00", "latin1");
  bytes.writeUInt16LE(bytes.length - 10, 8);
  bytes.write(text, 10, "latin1");
  bytes.write("\n", bytes.length - 1, "latin1");
  return bytes;
}

export function encodeFixedText(texts: readonly string[], width: number, column: string): Uint8Array {
  const points = new Uint32Array(texts.length * width);
  for (const [i, text] of texts.entries()) {
    if (text.endsWith("\0"))
      throw new RollbookError(
        "not-representable",
        { column, text },
        `column ${column} holds ${JSON.stringify(text)}: numpy drops a NUL character at the end of a text. Export as jsonl, parquet or safetensors.`,
      );
    let at = i * width;
    for (const character of text) points[at++] = character.codePointAt(0)!;
  }
  return new Uint8Array(points.buffer);
}
