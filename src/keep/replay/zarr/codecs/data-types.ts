/** The data types of our arrays: their Zarr names, their typed arrays, their fill values. In and out: names and values.
 *  Does not know chunks and codecs. */
import { type Json, RollbookError } from "../../../../base/index.ts";

/** Booleans are bytes 0 and 1. Strings are plain arrays; everything else is a typed array, little-endian. */
export interface ValuesOf {
  bool: Uint8Array;
  int8: Int8Array;
  int16: Int16Array;
  int32: Int32Array;
  int64: BigInt64Array;
  uint8: Uint8Array;
  uint16: Uint16Array;
  uint32: Uint32Array;
  uint64: BigUint64Array;
  float32: Float32Array;
  float64: Float64Array;
  string: string[];
}
export type DataType = keyof ValuesOf;
export type Values = ValuesOf[DataType];
export type FixedType = Exclude<DataType, "string">;
export type NumericValues = ValuesOf[FixedType];

/** A fill value in its JSON form; floats may also be "NaN", "Infinity" and "-Infinity". */
export type FillValue = boolean | number | string;

const CONSTRUCTORS = {
  bool: Uint8Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
} as const;

export const DATA_TYPES: readonly DataType[] = [...(Object.keys(CONSTRUCTORS) as FixedType[]), "string"];

export function isDataType(name: unknown): name is DataType {
  return DATA_TYPES.includes(name as DataType);
}

export function itemBytes(dtype: FixedType): number {
  return CONSTRUCTORS[dtype].BYTES_PER_ELEMENT;
}

export function emptyValues<T extends DataType>(dtype: T, length: number): ValuesOf[T] {
  if (dtype === "string") return new Array<string>(length).fill("") as ValuesOf[T];
  return new CONSTRUCTORS[dtype as FixedType](length) as ValuesOf[T];
}

/** Values over `bytes`: shared if the alignment allows, else copied. The length must be a whole number of items. */
export function valuesOver<T extends FixedType>(dtype: T, bytes: Uint8Array): ValuesOf[T] {
  const Constructor = CONSTRUCTORS[dtype];
  const aligned = bytes.byteOffset % Constructor.BYTES_PER_ELEMENT === 0 ? bytes : Uint8Array.from(bytes);
  return new Constructor(
    aligned.buffer as ArrayBuffer,
    aligned.byteOffset,
    aligned.byteLength / Constructor.BYTES_PER_ELEMENT,
  ) as ValuesOf[T];
}

/** Bytes of `values`, shared, not copied. */
export function bytesOver(values: NumericValues): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

export function isValuesOf<T extends DataType>(dtype: T, values: Values): values is ValuesOf[T] {
  return dtype === "string" ? Array.isArray(values) : values instanceof CONSTRUCTORS[dtype as FixedType];
}

export function defaultFill(dtype: DataType): FillValue {
  if (dtype === "bool") return false;
  if (dtype === "string") return "";
  return dtype === "float32" || dtype === "float64" ? "NaN" : 0;
}

/** Fill value as an item of `values`; refuses a value that the type cannot carry exactly. */
export function parseFill(dtype: DataType, fill: Json, where: string): boolean | number | bigint | string {
  if (dtype === "bool" && typeof fill === "boolean") return fill;
  if (dtype === "string" && typeof fill === "string") return fill;
  if (dtype.startsWith("float")) {
    if (typeof fill === "number") return fill;
    if (fill === "NaN" || fill === "Infinity" || fill === "-Infinity") return Number(fill);
  }
  if (dtype.includes("int") && Number.isSafeInteger(fill)) {
    const item = dtype.endsWith("64") ? BigInt(fill as number) : (fill as number);
    if (fits(dtype as FixedType, item)) return item;
  }
  throw new RollbookError(
    "zarr-bad-fill",
    { where, dtype, fill },
    `${where}: fill_value ${JSON.stringify(fill)} is not a ${dtype}. Use a value the type carries exactly.`,
  );
}

/** Sets items `from` … `to` to the fill value. */
export function fillValues(
  values: Values,
  item: boolean | number | bigint | string,
  [from, to]: [number, number],
): void {
  (values as { fill(item: unknown, from: number, to: number): unknown }).fill(item, from, to);
}

function fits(dtype: FixedType, item: number | bigint): boolean {
  const one = emptyValues(dtype, 1) as NumericValues;
  one.fill(item as never);
  return one[0] === item;
}
