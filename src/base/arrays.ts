/** Numeric columns as little-endian bytes: the form in which they are hashed, stored and exchanged. */
import { type Digest, digestBytes } from "./digest.ts";
import { RollbookError } from "./errors.ts";

export type DType = "u8" | "u32" | "i32" | "f32" | "f64";

export interface ColumnOf {
  u8: Uint8Array;
  u32: Uint32Array;
  i32: Int32Array;
  f32: Float32Array;
  f64: Float64Array;
}
export type Column = ColumnOf[DType];

export const ITEM_BYTES: Readonly<Record<DType, number>> = { u8: 1, u32: 4, i32: 4, f32: 4, f64: 8 };

const CONSTRUCTORS = {
  u8: Uint8Array,
  u32: Uint32Array,
  i32: Int32Array,
  f32: Float32Array,
  f64: Float64Array,
} as const;

if (new Uint8Array(new Uint16Array([1]).buffer)[0] !== 1) {
  throw new RollbookError("big-endian", {}, "this machine is big-endian; columns are stored little-endian.");
}

/** Hash tag of a column of this type. */
export function columnTag(dtype: DType): string {
  return `rollbook.column.${dtype}`;
}

export function dtypeOf(column: Column): DType {
  if (column instanceof Uint8Array) return "u8";
  if (column instanceof Uint32Array) return "u32";
  if (column instanceof Int32Array) return "i32";
  return column instanceof Float32Array ? "f32" : "f64";
}

export function emptyColumn<T extends DType>(dtype: T, length: number): ColumnOf[T] {
  return new CONSTRUCTORS[dtype](length) as ColumnOf[T];
}

/** A typed-array column that doubles its capacity when it is full. */
export class GrowingColumn<T extends DType = DType> {
  readonly #dtype: T;
  #values: ColumnOf[T];
  #length = 0;

  constructor(dtype: T) {
    this.#dtype = dtype;
    this.#values = emptyColumn(dtype, 1024);
  }

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    this.#reserve(this.#length + 1);
    this.#values[this.#length++] = value;
  }

  append(values: ArrayLike<number>): void {
    this.#reserve(this.#length + values.length);
    this.#values.set(values, this.#length);
    this.#length += values.length;
  }

  /** Returns a copy of the values added so far and empties the column. */
  take(): ColumnOf[T] {
    const taken = this.#values.slice(0, this.#length) as ColumnOf[T];
    this.#length = 0;
    return taken;
  }

  #reserve(length: number): void {
    if (length <= this.#values.length) return;
    const wider = emptyColumn(this.#dtype, Math.max(length, this.#values.length * 2));
    wider.set(this.#values);
    this.#values = wider;
  }
}

/** Bytes of a column, shared, not copied. */
export function bytesOf(column: Column): Uint8Array {
  return new Uint8Array(column.buffer, column.byteOffset, column.byteLength);
}

/** A column over `bytes`: shared if the alignment allows, else copied. */
export function columnFrom<T extends DType>(dtype: T, bytes: Uint8Array): ColumnOf[T] {
  const size = ITEM_BYTES[dtype];
  if (bytes.byteLength % size !== 0) {
    throw new RollbookError(
      "bad-column",
      { dtype, bytes: bytes.byteLength },
      `${bytes.byteLength} bytes are not a whole number of ${dtype} values.`,
    );
  }
  // Not bytes.slice(): on a Buffer, slice returns a view with the same alignment.
  const aligned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  return new CONSTRUCTORS[dtype](
    aligned.buffer as ArrayBuffer,
    aligned.byteOffset,
    aligned.byteLength / size,
  ) as ColumnOf[T];
}

export function digestColumn(column: Column): Digest {
  return digestBytes(columnTag(dtypeOf(column)), bytesOf(column));
}

/** Index of the first value that is not finite, or -1. Tests exponent bits, which is faster than arithmetic. */
export function firstNonFinite(column: Float32Array | Float64Array): number {
  const words = new Uint32Array(column.buffer, column.byteOffset, column.byteLength >> 2);
  // Only an exponent of all ones carries into the sign bit.
  let seen = 0;
  if (column instanceof Float32Array) {
    let i = 0;
    // Four words per step take half the time of one word per step.
    for (const whole = words.length & ~3; i < whole; i += 4)
      seen |= carry(words[i]!) | carry(words[i + 1]!) | carry(words[i + 2]!) | carry(words[i + 3]!);
    for (; i < words.length; i++) seen |= carry(words[i]!);
  } else {
    for (let i = 1; i < words.length; i += 2) seen |= (words[i]! & 0x7ff00000) + 0x00100000;
  }
  return seen >= 0 ? -1 : column.findIndex((value) => !Number.isFinite(value));
}

/** Negative if `word` holds the bits of a 32-bit NaN or infinity. */
export function carry(word: number): number {
  return (word & 0x7f800000) + 0x00800000;
}

/** Dot product, summed from the first element to the last. */
export function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
