/** The safetensors file format: a length, a JSON header, raw little-endian tensors. A small, strict implementation.
 *  In: named arrays and text metadata. Out: bytes, and back. The same content gives the same bytes.
 *  `planSafetensors` gives only the header and the places, for files that are written piece by piece.
 *  Reads the types that policies use. Refuses a file with a hole, an overlap, a wrong length or another type. */
import {
  bytesOf,
  type ColumnOf,
  columnFrom,
  type DType,
  decodeUtf8,
  dtypeOf,
  ITEM_BYTES,
  isObject,
  parseJson,
  RollbookError,
  reasonOf,
} from "../base/index.ts";

export interface Tensor {
  readonly shape: readonly number[];
  readonly data: ColumnOf[DType];
}
export type Tensors = Readonly<Record<string, Tensor>>;

interface SafetensorsFile {
  readonly tensors: Tensors;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Types that can be written. `TYPES` lists the types that can be read. */
type TensorType = DType | "i64";

export interface TensorShape {
  readonly name: string;
  readonly type: TensorType;
  readonly shape: readonly number[];
}

interface SafetensorsPlan {
  /** All bytes before the tensors. */
  readonly header: Uint8Array;
  /** In the order of the file; `at` counts from the start of the file. */
  readonly places: readonly { readonly name: string; readonly at: number; readonly bytes: number }[];
}

const NAMES: Readonly<Record<DType, string>> = { u8: "U8", u32: "U32", i32: "I32", f32: "F32", f64: "F64" };
const TYPES = new Map(Object.entries(NAMES).map(([dtype, name]) => [name, dtype as DType]));
/** The limit of the reference implementation. */
const MOST_HEADER_BYTES = 100_000_000;
const METADATA = "__metadata__";

export function encodeSafetensors({ tensors, metadata }: SafetensorsFile): Uint8Array {
  const shapes = Object.entries(tensors).map(([name, { shape, data }]): TensorShape => {
    if (product(shape) !== data.length)
      throw bad(name, `tensor ${name}: shape [${shape}] does not hold its ${data.length} values`);
    return { name, type: dtypeOf(data), shape };
  });
  const { header, places } = planSafetensors(shapes, metadata);
  return Buffer.concat([header, ...places.map(({ name }) => bytesOf(tensors[name]!.data))]);
}

export function planSafetensors(
  tensors: readonly TensorShape[],
  metadata: Readonly<Record<string, string>>,
): SafetensorsPlan {
  // Wide types first, then by name: every tensor is aligned, and the order matches the reference writer.
  const ordered = [...tensors].sort(
    (a, b) => itemBytesOf(b.type) - itemBytesOf(a.type) || (a.name < b.name ? -1 : 1),
  );
  const entries: Record<string, unknown> = Object.keys(metadata).length === 0 ? {} : { [METADATA]: metadata };
  const sizes: { name: string; from: number; bytes: number }[] = [];
  let end = 0;
  for (const { name, type, shape } of ordered) {
    if (name === METADATA) throw bad(name, `a tensor may not be named ${METADATA}`);
    const bytes = product(shape) * itemBytesOf(type);
    entries[name] = { dtype: type === "i64" ? "I64" : NAMES[type], shape, data_offsets: [end, end + bytes] };
    sizes.push({ name, from: end, bytes });
    end += bytes;
  }
  const json = Buffer.from(JSON.stringify(entries));
  const header = Buffer.alloc(8 + Math.ceil(json.length / 8) * 8, " ");
  header.writeBigUInt64LE(BigInt(header.length - 8), 0);
  json.copy(header, 8);
  return {
    header,
    places: sizes.map(({ name, from, bytes }) => ({ name, at: header.length + from, bytes })),
  };
}

export function decodeSafetensors(bytes: Uint8Array, where: string): SafetensorsFile {
  if (bytes.length < 8)
    throw bad(where, `${where}: ${bytes.length} bytes are too few for a safetensors file`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getBigUint64(0, true);
  if (length > BigInt(Math.min(MOST_HEADER_BYTES, bytes.length - 8)))
    throw bad(where, `${where}: the header is said to have ${length} bytes, the file has ${bytes.length}`);
  const body = 8 + Number(length);
  const header = readHeader(bytes.subarray(8, body), where);
  const { [METADATA]: metadata = {}, ...entries } = header;
  const placed = Object.entries(entries).map(([name, entry]) => readEntry(name, entry, where));
  checkPlaces(placed, bytes.length - body, where);
  const tensors: Record<string, Tensor> = {};
  for (const { name, dtype, shape, from, to } of placed)
    tensors[name] = { shape, data: columnFrom(dtype, bytes.subarray(body + from, body + to)) };
  return { tensors, metadata: readMetadata(metadata, where) };
}

interface PlacedTensor {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly from: number;
  readonly to: number;
}

function readHeader(bytes: Uint8Array, where: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(decodeUtf8(bytes, where).trimEnd(), where);
  } catch (cause) {
    throw bad(where, `${where}: the header is not JSON (${reasonOf(cause)})`, cause);
  }
  if (isObject(value)) return value;
  throw bad(where, `${where}: the header is not a JSON object`);
}

function readEntry(name: string, entry: unknown, where: string): PlacedTensor {
  const fault = (what: string) => bad(where, `${where}: tensor ${JSON.stringify(name)} ${what}`);
  if (!isObject(entry)) throw fault("has no description");
  const { dtype: type, shape, data_offsets: offsets, ...rest } = entry;
  if (Object.keys(rest).length > 0) throw fault(`has an unknown key ${Object.keys(rest)[0]}`);
  const dtype = typeof type === "string" ? TYPES.get(type) : undefined;
  if (dtype === undefined)
    throw fault(`is of type ${JSON.stringify(type)}. Known types: ${[...TYPES.keys()].join(", ")}`);
  if (!isCounts(shape)) throw fault("has a shape that is not a list of whole numbers");
  if (!isCounts(offsets) || offsets.length !== 2) throw fault("has no pair of data_offsets");
  const [from, to] = offsets as [number, number];
  if (to - from !== product(shape) * ITEM_BYTES[dtype])
    throw fault(
      `takes ${to - from} bytes, its shape [${shape}] of ${type} needs ${product(shape) * ITEM_BYTES[dtype]}`,
    );
  return { name, dtype, shape, from, to };
}

/** Tensors must follow one another without gap or overlap, and end at the end of the file. */
function checkPlaces(placed: readonly PlacedTensor[], available: number, where: string): void {
  let end = 0;
  for (const { name, from, to } of [...placed].sort((a, b) => a.from - b.from || a.to - b.to)) {
    if (from !== end)
      throw bad(
        where,
        `${where}: tensor ${JSON.stringify(name)} begins at ${from}, ${from < end ? "inside" : "apart from"} the one before, which ends at ${end}`,
      );
    end = to;
  }
  if (end !== available)
    throw bad(
      where,
      `${where}: the tensors need ${end} bytes, the file has ${available}: it is ${available < end ? "truncated" : "followed by something else"}`,
    );
}

function readMetadata(value: unknown, where: string): Record<string, string> {
  if (isObject(value) && Object.values(value).every((each) => typeof each === "string"))
    return value as Record<string, string>;
  throw bad(where, `${where}: ${METADATA} is not a map of text`);
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((each) => Number.isSafeInteger(each) && each >= 0);
}

function itemBytesOf(type: TensorType): number {
  return type === "i64" ? 8 : ITEM_BYTES[type];
}

function product(shape: readonly number[]): number {
  return shape.reduce((total, each) => total * each, 1);
}

function bad(where: string, what: string, cause?: unknown): RollbookError {
  return new RollbookError(
    "bad-safetensors",
    { where },
    `${what}. Restore the file from a copy, or train again.`,
    { cause },
  );
}
